import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

import type { MastraModelConfig } from '@mastra/core/llm';

import type { Answer, EvaluationResult, ResponseVerdict } from './events.ts';
import { serve, type ServedModel } from './model.ts';

export interface GuardrailOptions {
  /** The model that judges, as Mastra takes it. Default: the judge of the settings, the local one if there are none. */
  model?: MastraModelConfig | undefined;
  /** The program and arguments ahead of its command. Default: `['guardrail']`, found on the PATH. */
  command?: readonly string[];
  /** The settings: judge and policies. Default: the local judge and the default policy. */
  config?: string;
  /** One policy for all answers. Default: by route and tenant. */
  policy?: string;
  /** How long an answer may take, in milliseconds; the first one waits for the judge to load. Default: 60,000. */
  timeoutMs?: number;
  /** Variables added to the environment of the program: settings, such as a key of the LLM judge. */
  env?: Record<string, string>;
}

/** The guard could not judge an answer. Its message quotes no text of the answer. */
export class GuardrailError extends Error {
  override name = 'GuardrailError';
}

interface Pending {
  resolve: (verdict: ResponseVerdict) => void;
  reject: (error: GuardrailError) => void;
  timer: NodeJS.Timeout;
  askAgain: (() => Promise<ResponseVerdict>) | undefined;
}

interface Running {
  process: ChildProcess;
  model: ServedModel | undefined;
  lines: number;
  pending: Map<string, Pending>;
  said: string;
  /** When its last result came, in milliseconds. */
  judgedAt?: number;
  /** Why it runs no more. */
  ended?: string;
  idle?: NodeJS.Timeout;
}

const MOST_SAID = 4_000;
const IDLE_MS = 60_000;
const LONGEST_MS = 2 ** 31 - 1; // of a timer; a longer one would end at once
const MOST_ANSWERS = 10_000; // of one process, which keeps a little of each

const children = new Set<ChildProcess>();
process.on('exit', () => children.forEach((child) => child.kill()));

const shared = new WeakMap<object, Map<string, Guardrail>>();

/** The guard of all who give the same options. Model objects are the same if one provider of the AI SDK made them so. */
export function sharedGuardrail(options: GuardrailOptions): Guardrail {
  const given = new Guardrail(options); // refuses what no key would tell apart
  const { model, ...others } = options;
  let [owner, key]: [object, string] = [shared, JSON.stringify(options)];
  if (typeof model === 'object' && 'doGenerate' in model) {
    const { constructor, provider, modelId, settings, config } = model as ModelObject;
    owner = config?.headers ?? model; // made once for each provider, with its key
    key = JSON.stringify([constructor.name, provider, modelId, settings, others]);
  }
  const guards = shared.get(owner) ?? new Map<string, Guardrail>();
  const guard = guards.get(key) ?? given;
  shared.set(owner, guards.set(key, guard));
  return guard;
}

/** Beside what the AI SDK specifies, what its own models and most others have. */
type ModelObject = { provider: string; modelId: string; settings?: object; config?: { headers?: object } };

/** Throws a TypeError if `given` has another name than `known`. */
export function refuseOthers(given: object, known: readonly string[], place = ''): void {
  const others = Object.keys(given).filter((name) => !known.includes(name));
  if (others.length > 0) throw new TypeError(`${place}unknown: ${others.join(', ')}; known are ${known.join(', ')}`);
}

/**
 * `guardrail evaluate` as a process that stays: an answer a line goes in, a result a line comes back.
 *
 * It starts with the first answer, ends with Node or after a minute without one, and starts anew with the next. It
 * doesn't keep Node from ending while no answer is being judged. One is enough for a server; judging is concurrent.
 */
export class Guardrail {
  readonly #options: GuardrailOptions;
  #running: Promise<Running> | undefined;
  #current: Running | undefined;

  constructor(options: GuardrailOptions = {}) {
    refuseOthers(options, ['model', 'command', 'config', 'policy', 'timeoutMs', 'env'], 'guardrail: ');
    const { model, timeoutMs = 1 } = options;
    if ((model !== undefined && !model) || typeof model === 'function' || Array.isArray(model)) {
      throw new TypeError('model: give an id, an object with id, or a model of the AI SDK; leave it out for the local judge');
    }
    if (!(timeoutMs > 0 && timeoutMs <= LONGEST_MS)) {
      throw new RangeError(`timeoutMs: ${timeoutMs} is no time; give milliseconds, from 1 to ${LONGEST_MS}`);
    }
    this.#options = options;
  }

  /** Judges a whole answer. Rejects with a GuardrailError if that fails or takes too long. */
  check(answer: Answer): Promise<ResponseVerdict> {
    return this.#ask(answer, () => this.#ask(answer));
  }

  async #ask(answer: Answer, askAgain?: Pending['askAgain']): Promise<ResponseVerdict> {
    const running = await (this.#running ??= this.#start().catch((error: unknown) => {
      this.#running = undefined; // the next answer tries again
      throw error;
    }));
    if (running.ended !== undefined) throw new GuardrailError(running.ended);
    if (running !== this.#current) return this.#ask(answer, askAgain); // it takes no more
    const { promise, resolve, reject } = Promise.withResolvers<ResponseVerdict>();
    const place = `line ${++running.lines}`;
    const timeoutMs = this.#options.timeoutMs ?? 60_000;
    const asked = performance.now();
    const timer = setTimeout(() => {
      this.#settle(running, place)?.reject(new GuardrailError(`no verdict within ${timeoutMs} ms (timeoutMs)`));
      const isStuck = (running.judgedAt ?? 0) <= asked; // no other answer got one either
      if (isStuck) running.process.kill();
    }, timeoutMs);
    running.pending.set(place, { resolve, reject, timer, askAgain });
    this.#hold(running, true);
    running.process.stdin?.write(`${JSON.stringify(answer)}\n`);
    if (running.lines === MOST_ANSWERS) this.#end(running);
    return promise;
  }

  /** Ends the process, after the answers that it has were judged. */
  async close(): Promise<void> {
    const running = await this.#running?.catch(() => undefined);
    if (running === undefined || running.ended !== undefined) return;
    const ended = new Promise((resolve) => running.process.once('close', resolve));
    this.#hold(running, true);
    this.#end(running);
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** What its model last failed with, if it has one. */
  get failure(): string | undefined {
    return this.#current?.model?.failure;
  }

  async #start(): Promise<Running> {
    const { command = ['guardrail'], config, policy, env, model: given } = this.#options;
    const [program, ...first] = command;
    if (program === undefined) throw new TypeError("command: give at least a program, such as ['guardrail']");
    const named = Object.entries({ '--config': config, '--policy': policy });
    const options = named.flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
    const model = given === undefined ? undefined : await serve(given);
    // The score asks for verdicts on the parts of claims.
    const asked = ['evaluate', '-', '--format', 'guardrail', '--out', '-', '--score', 'mastra'];
    const child = spawn(program, [...first, ...asked, ...options], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...model?.env, ...env },
    });
    const running: Running = { process: child, model, lines: 0, pending: new Map(), said: '' };
    children.add(child);
    // Not node:readline, which also ends lines at U+2028, a character of texts here.
    let begun = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (begun + text).split('\n');
      begun = lines.pop() ?? '';
      for (const line of lines) this.#take(running, line);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      running.said = (running.said + text).slice(-MOST_SAID);
    });
    child.stdin.on('error', () => undefined); // the process ended; 'close' or 'error' says why
    child.on('error', (error) => this.#ended(running, `${program}: ${error.message}; install streaming-guardrail, or name the program in command`));
    child.on('close', (code, signal) => this.#ended(running, `guardrail ended with ${signal ?? `status ${code}`}${why(running)}`));
    this.#hold(running, false);
    return (this.#current = running);
  }

  #take(running: Running, line: string): void {
    if (!line.includes('"evaluation.result"')) return;
    const result = JSON.parse(line) as EvaluationResult;
    const pending = this.#settle(running, result.place);
    running.judgedAt = performance.now();
    if (result.verdict !== null) pending?.resolve(result.verdict);
    else pending?.reject(new GuardrailError(result.error ?? 'no verdict'));
  }

  #settle(running: Running, place: string): Pending | undefined {
    const pending = running.pending.get(place);
    running.pending.delete(place);
    clearTimeout(pending?.timer);
    if (running.pending.size === 0) this.#hold(running, false);
    return pending;
  }

  /** Whether the process has work, and so keeps Node from ending. */
  #hold(running: Running, held: boolean): void {
    clearTimeout(running.idle);
    if (!held) running.idle = setTimeout(() => this.#end(running), IDLE_MS).unref();
    const { stdin, stdout, stderr } = running.process;
    for (const each of [running.process, stdin, stdout, stderr] as (ChildProcess | Socket | null)[]) {
      if (held) each?.ref();
      else each?.unref();
    }
  }

  #end(running: Running): void {
    running.process.stdin?.end();
    if (this.#current === running) this.#running = this.#current = undefined; // the next answer starts another
  }

  #ended(running: Running, reason: string): void {
    running.ended = reason;
    this.#end(running);
    clearTimeout(running.idle);
    running.model?.close();
    children.delete(running.process);
    for (const [place, { resolve, reject, askAgain }] of [...running.pending]) {
      this.#settle(running, place);
      // One that never judged would fail again.
      if (running.judgedAt !== undefined && askAgain) askAgain().then(resolve, reject);
      else reject(new GuardrailError(reason));
    }
  }
}

/** The last line of what the program said that is its error; the very last if it never judged, and so quotes no answer. */
function why({ said, judgedAt }: Running): string {
  const lines = said.replaceAll(/[│╭╮╰╯─]/gu, ' ').split('\n').map((line) => line.trim()).filter(Boolean);
  const errors = lines.filter((line) => /^(error|Error|Invalid|\w*Error)\b/u.test(line));
  const last = errors.at(-1) ?? (judgedAt === undefined ? lines.at(-1) : undefined);
  return last === undefined ? '' : `: ${last}`;
}
