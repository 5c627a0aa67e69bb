import { resolve } from 'node:path';

/** The `guardrail` of this checkout, or the one that GUARDRAIL_PROGRAM names. */
export const PROGRAM = process.env['GUARDRAIL_PROGRAM'] ?? resolve(import.meta.dirname, '../../../.venv/bin/guardrail');

export const CONTEXT = ['The basic plan costs $49 a month. Refunds are paid within 14 days of the cancellation.'];
export const RIGHT = 'The basic plan costs $49 a month.';
export const WRONG = 'The basic plan costs $79 a month.';
export const BOTH = `Refunds are paid within 14 days of the cancellation. ${WRONG}`;
export const QUESTION = 'What does the basic plan cost?';
