import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

import type { Answer, EvaluationResult, ResponseVerdict } from './events.ts';

export interface GuardrailOptions {
  /** The program and arguments ahead of its command. Default: `['guardrail']`, found on the PATH. */
  command?: readonly string[];
  /** The settings: judge and policies. Default: the local judge and the default policy. */
  config?: string;
  /** One policy for all answers. Default: by route and tenant. */
  policy?: string;
  /** How long an answer may take, in milliseconds; the first one waits for the judge to load. Default: 60,000. */
  timeoutMs?: number;
  /** Variables added to the environment of the program, such as a key of the LLM judge. */
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
}

interface Running {
  process: ChildProcess;
  lines: number;
  pending: Map<string, Pending>;
  said: string;
}

const MOST_SAID = 4_000;

/**
 * `guardrail evaluate` as a process that stays: an answer a line goes in, a result a line comes back.
 *
 * It starts with the first answer and starts anew after it ended. It doesn't keep Node from ending while no answer is
 * being judged. One is enough for a server; judging is concurrent.
 */
export class Guardrail {
  readonly #options: GuardrailOptions;
  #running: Running | undefined;

  constructor(options: GuardrailOptions = {}) {
    this.#options = options;
  }

  /** Judges a whole answer. Rejects with a GuardrailError if that fails or takes too long. */
  check(answer: Answer): Promise<ResponseVerdict> {
    const running = (this.#running ??= this.#start());
    const { promise, resolve, reject } = Promise.withResolvers<ResponseVerdict>();
    const place = `line ${++running.lines}`;
    const timeoutMs = this.#options.timeoutMs ?? 60_000;
    const timer = setTimeout(() => {
      this.#settle(running, place)?.reject(new GuardrailError(`no verdict within ${timeoutMs} ms (timeoutMs)`));
    }, timeoutMs);
    running.pending.set(place, { resolve, reject, timer });
    hold(running.process, true);
    running.process.stdin?.write(`${JSON.stringify(answer)}\n`);
    return promise;
  }

  /** Ends the process, after the answers that it has were judged. */
  async close(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined || running.process.exitCode !== null || running.process.signalCode !== null) return;
    const ended = new Promise((resolve) => running.process.once('close', resolve));
    hold(running.process, true);
    running.process.stdin?.end();
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #start(): Running {
    const { command = ['guardrail'], config, policy, env } = this.#options;
    const [program, ...first] = command;
    if (program === undefined) throw new TypeError("command: give at least a program, such as ['guardrail']");
    const given: [string, string | number | undefined][] = [
      ['--config', config],
      ['--policy', policy],
    ];
    const options = given.flatMap(([name, value]) => (value === undefined ? [] : [name, String(value)]));
    const child = spawn(program, [...first, 'evaluate', '-', '--format', 'guardrail', '--out', '-', ...options], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    const running: Running = { process: child, lines: 0, pending: new Map(), said: '' };
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
    child.on('close', (code, signal) => this.#ended(running, `guardrail ended with ${signal ?? `status ${code}`}${why(running.said)}`));
    hold(child, false);
    return running;
  }

  #take(running: Running, line: string): void {
    if (!line.includes('"evaluation.result"')) return;
    const result = JSON.parse(line) as EvaluationResult;
    const pending = this.#settle(running, result.place);
    if (result.verdict !== null) pending?.resolve(result.verdict);
    else pending?.reject(new GuardrailError(result.error ?? 'no verdict'));
  }

  #settle(running: Running, place: string): Pending | undefined {
    const pending = running.pending.get(place);
    running.pending.delete(place);
    clearTimeout(pending?.timer);
    if (running.pending.size === 0) hold(running.process, false);
    return pending;
  }

  #ended(running: Running, reason: string): void {
    if (this.#running === running) this.#running = undefined;
    for (const place of [...running.pending.keys()]) {
      this.#settle(running, place)?.reject(new GuardrailError(reason));
    }
  }
}

/** Whether the process keeps Node running. */
function hold(child: ChildProcess, held: boolean): void {
  for (const each of [child, child.stdin, child.stdout, child.stderr] as (ChildProcess | Socket | null)[]) {
    if (held) each?.ref();
    else each?.unref();
  }
}

/** The last line of what the program said, which is its error. Its table of results is none. */
function why(said: string): string {
  const errors = said.split('\n').filter((line) => /^(error|Error|Invalid|Usage|\w*Error)\b/u.test(line.trim()));
  const last = errors.at(-1)?.trim();
  return last === undefined ? '' : `: ${last}`;
}
