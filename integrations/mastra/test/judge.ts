/** A chat-completions server on loopback that judges from a script, as a model would whose key is `KEY`. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export const KEY = 'the-key-of-the-scripted-judge';

/** What is said of a claim: each of its statements with a verdict. A single one is the claim itself. */
export type Said = readonly (readonly [statement: string, verdict: 'supported' | 'unsupported' | 'contradicted'])[];

export interface ScriptedJudge {
  url: string;
  /** The bodies of the calls so far. */
  calls: { model: string; messages: { role: string; content: string }[] }[];
  close: () => void;
}

/** The reply of a model that says `script[claim]` of each claim in its prompt. */
export function replyTo(prompt: string, script: Readonly<Record<string, Said>>): string {
  const texts = [...prompt.matchAll(/claim (c\d+)\]\n(.*)/gu)].flatMap(([, id = '', claim = '']) => {
    const said = script[claim];
    if (said === undefined) throw new Error(`the script has nothing on: ${claim}`);
    const words = said.map(([, verdict]) => verdict);
    const [first = 'unsupported'] = words;
    const whole = words.includes('contradicted') ? 'contradicted' : words.every((word) => word === first) ? first : 'partial';
    const parts = said.map(([text, verdict], at) => `${id}${'abcdef'[at]} 1 ${verdict}: ${text}`);
    const reason = whole === 'supported' ? '' : ': It is not all in the documents.';
    return [...(parts.length > 1 ? parts : []), `${id} 1 ${whole}${reason}`];
  });
  return JSON.stringify({ v: texts });
}

export async function scriptedJudge(script: Readonly<Record<string, Said>>): Promise<ScriptedJudge> {
  const calls: ScriptedJudge['calls'] = [];
  const server = createServer(async (request, response) => {
    const body = (await json(request)) as ScriptedJudge['calls'][number];
    const isKnown = request.headers.authorization === `Bearer ${KEY}`;
    if (isKnown) calls.push(body);
    const content = isKnown ? replyTo(body.messages.map((each) => each.content).join('\n'), script) : '';
    response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' }).end(
      JSON.stringify(
        isKnown
          ? {
              id: '1',
              object: 'chat.completion',
              created: 1,
              model: body.model,
              choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
              usage: { prompt_tokens: 700, completion_tokens: 30, total_tokens: 730 },
            }
          : { error: { message: 'this key is not known here', type: 'invalid_request_error', code: 'invalid_api_key' } },
      ),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, calls, close: () => server.close() };
}
