import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, describe, it } from 'node:test';
import { promisify } from 'node:util';

import { Guardrail, GuardrailError } from '../src/index.ts';
import { CONTEXT, PROGRAM, QUESTION, RIGHT, WRONG } from './program.ts';

const run = promisify(execFile);

describe('a guard in a process of its own', () => {
  const guard = new Guardrail({ command: [PROGRAM] });
  after(() => guard.close());

  const check = (answer: string) => guard.check({ question: QUESTION, contexts: CONTEXT, answer });

  it('judges answers that come at once, each with its own verdict', async () => {
    const answers = Array.from({ length: 40 }, (_, at) => (at % 2 ? WRONG : RIGHT));
    const verdicts = await Promise.all(answers.map(check));
    assert.deepEqual(
      verdicts.map((each) => each.hallucinated_claims),
      answers.map((each) => (each === WRONG ? [WRONG] : [])),
    );
    assert.equal(verdicts[1]?.claims[0]?.verdict, 'CONTRADICTED');
    assert.equal(verdicts[1]?.claims[0]?.severity, 'major');
  });

  it('takes line ends, surrogates and quotes in texts as they are', async () => {
    const verdict = await check('"The basic plan"\r\ncosts $49 \u{1F600} a month.\u2028Nice.');
    assert.ok(verdict.claims.length > 0);
    await assert.rejects(check('half a pair: \ud83d'), GuardrailError);
    assert.equal((await check(RIGHT)).decision, 'release');
  });

  it('names what is wrong with an answer, and goes on', async () => {
    const wrong = { question: QUESTION, contexts: CONTEXT, answer: 7 } as unknown as Parameters<Guardrail['check']>[0];
    await assert.rejects(guard.check(wrong), /answer/);
    assert.equal((await check(RIGHT)).decision, 'release');
  });
});

describe('a guard that fails', () => {
  it('says which program is missing', async () => {
    const guard = new Guardrail({ command: ['/nowhere/guardrail'] });
    await assert.rejects(guard.check({ question: '', contexts: CONTEXT, answer: RIGHT }), {
      name: 'GuardrailError',
      message: /\/nowhere\/guardrail: .*ENOENT; install streaming-guardrail, or name the program in command/,
    });
    await guard.close();
  });

  it('says what the program says of wrong settings', async () => {
    const lost = "console.error('cannot find it\\n'); process.exit(1)";
    for (const [options, message] of [
      [{ command: [PROGRAM], config: '/nowhere/guardrail.yaml' }, /status 2.*\/nowhere\/guardrail\.yaml/s],
      [{ command: [PROGRAM], policy: 'none' }, /status 2: Invalid value for --policy: unknown policy 'none'/],
      [{ command: [process.execPath, '--eval', lost, '--'] }, /status 1: cannot find it$/],
    ] as const) {
      await using guard = new Guardrail(options);
      await assert.rejects(guard.check({ question: '', contexts: CONTEXT, answer: RIGHT }), { message });
    }
  });

  it('gives up on an answer after timeoutMs', async () => {
    const guard = new Guardrail({ command: [process.execPath, '--eval', 'process.stdin.resume()', '--'], timeoutMs: 1 });
    await assert.rejects(guard.check({ question: '', contexts: CONTEXT, answer: RIGHT }), /no verdict within 1 ms/);
    await guard.close();
  });

  it('starts anew after it was killed', async () => {
    // Ends itself at the first line; what was asked is told so, and the next answer starts another.
    const guard = new Guardrail({
      command: [process.execPath, '--eval', "process.stdin.once('data', () => process.kill(process.pid, 'SIGKILL'))", '--'],
    });
    for (const _ of [1, 2]) {
      await assert.rejects(guard.check({ question: '', contexts: CONTEXT, answer: RIGHT }), /ended with SIGKILL/);
    }
    await guard.close();
  });
});

// Answers each line with its process id, but none from one on that says so.
const SAYS_ITS_ID = [
  process.execPath,
  '--eval',
  `let lines = 0;
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    if (line.includes('hang')) process.stdin.pause();
    const verdict = { summary: process.pid };
    console.log(JSON.stringify({ type: line.includes('hang') ? '' : 'evaluation.result', place: 'line ' + ++lines, verdict, error: null }));
  })`,
  '--',
];

it('a guard has a new process after one got stuck', async () => {
  await using guard = new Guardrail({ command: SAYS_ITS_ID, timeoutMs: 3_000 });
  const check = (answer: string) => guard.check({ question: '', contexts: [], answer });
  const before = (await check('')).summary;
  await assert.rejects(check('hang'), /no verdict within/);
  assert.notEqual((await check('')).summary, before);
});

it('a guard has a new process after ten thousand answers, and loses none', async () => {
  await using guard = new Guardrail({ command: SAYS_ITS_ID });
  const answers = Array.from({ length: 10_001 }, () => guard.check({ question: '', contexts: [], answer: '' }));
  const processes = (await Promise.all(answers)).map((verdict) => verdict.summary);
  assert.equal(new Set(processes).size, 2);
  assert.equal(new Set(processes.slice(0, 10_000)).size, 1);
});

it('a guard that was not closed does not keep Node from ending', async () => {
  const index = new URL('../src/index.ts', import.meta.url);
  const code = `
    const { Guardrail } = await import(${JSON.stringify(index.href)});
    const guard = new Guardrail({ command: [${JSON.stringify(PROGRAM)}] });
    const verdict = await guard.check(${JSON.stringify({ question: QUESTION, contexts: CONTEXT, answer: RIGHT })});
    console.log(verdict.decision);`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', code], { timeout: 60_000 });
  assert.equal(stdout.trim(), 'release');
});
