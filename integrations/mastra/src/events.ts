/** What `guardrail evaluate` reads and writes, as far as a scorer needs it. docs/events.md has all of it. */

/** A document. A mere text is named c1, c2, … by its place. */
export type Document = string | { id?: string; text: string; source?: string };

/** An answer to judge. The other fields of a `response` event, such as `route`, choose its policy. */
export interface Answer {
  question: string;
  contexts: readonly Document[];
  answer: string;
  response_id?: string;
  route?: string;
  tenant?: string;
  generator_model?: string;
  metadata?: Record<string, unknown>;
}

export type Verdict = 'SUPPORTED' | 'PARTIALLY_SUPPORTED' | 'UNSUPPORTED' | 'CONTRADICTED' | 'UNVERIFIED';

export interface ClaimVerdict {
  claim_id: string;
  text: string;
  span: [number, number];
  severity: 'minor' | 'normal' | 'major' | 'critical';
  verdict: Verdict;
  confidence: number;
  support: number | null;
  contradiction: number | null;
  /** Exact results beside the verdict, such as "figure_conflict"; docs/events.md lists them. */
  findings: string[];
  evidence: { context_id: string; quote: string; span: [number, number] }[];
  /** Ids of contexts that contradict the claim while another one supports it. */
  conflicting_contexts: string[];
  reasoning: string;
  /** The statements that the claim was decomposed into, if it was. */
  parts: { text: string; verdict: Verdict }[];
  judge: string;
}

export interface ResponseVerdict {
  response_id: string;
  /** Severity-weighted, from 0 to 1; null if there was nothing to check. */
  score: number | null;
  decision: 'release' | 'flag' | 'redact' | 'block';
  rule: string;
  summary: string;
  claims: ClaimVerdict[];
  /** The `claim_id` of the claim that decided; null if none did. */
  deciding_claim: string | null;
  hallucinated_claims: string[];
}

/** One line of the worker's output: a verdict, or the reason why there is none. */
export interface EvaluationResult {
  type: 'evaluation.result';
  place: string;
  verdict: ResponseVerdict | null;
  error: string | null;
}
