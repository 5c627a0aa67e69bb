/** A model of Mastra as a chat-completions API for one guard process, on the loopback interface and behind a key. */

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

import { Agent } from '@mastra/core/agent';
import type { MastraModelConfig } from '@mastra/core/llm';

export interface ServedModel {
  /** Added to the environment of the process whose judge it is. */
  env: Record<string, string>;
  /** What it last failed with, in the words of Mastra or its provider. */
  failure: string | undefined;
  close: () => void;
}

interface Call {
  messages: { role: string; content: string }[];
  temperature?: number;
  max_completion_tokens: number;
}

const FAILED = /^[45]\d\d$/u;

/** As the AI SDK throws them. */
type ModelError = Error & { statusCode?: unknown; responseBody?: unknown; isRetryable?: boolean };

export async function serve(model: MastraModelConfig): Promise<ServedModel> {
  const agent = new Agent({ id: 'guardrail-judge', name: 'guardrail-judge', instructions: [], model });
  const { modelId } = await agent.getModel(); // throws for an unknown one, before anything listens
  const key = randomUUID();
  const server = createServer(async (request, response) => {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const reply = (status: number, body: string) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    if (request.headers.authorization !== `Bearer ${key}`) return reply(401, '{}');
    try {
      return reply(200, JSON.stringify(await complete(agent, (await json(request)) as Call, gone.signal)));
    } catch (error) {
      const { message, statusCode, responseBody, isRetryable } = error as ModelError; // of any provider: of any type
      served.failure = message;
      const status = FAILED.test(`${statusCode}`) ? Number(statusCode) : isRetryable ? 503 : 400;
      return reply(status, typeof responseBody === 'string' ? responseBody : JSON.stringify({ error: { message } }));
    }
  });
  server.on('connection', (socket) => socket.unref());
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const unproxied = [process.env['no_proxy'] ?? process.env['NO_PROXY'], '127.0.0.1'].filter(Boolean).join();
  const env = {
    GUARDRAIL_JUDGE__KIND: 'llm',
    GUARDRAIL_JUDGE__LLM__MODEL: modelId,
    GUARDRAIL_JUDGE__LLM__BASE_URL: `http://127.0.0.1:${(server.unref().address() as AddressInfo).port}/v1`,
    GUARDRAIL_JUDGE__LLM__API_KEY: key,
    NO_PROXY: unproxied,
    no_proxy: unproxied,
  };
  const served: ServedModel = { env, failure: undefined, close: () => server.close() };
  return served;
}

async function complete(agent: Agent, { messages, temperature, ...call }: Call, abortSignal: AbortSignal): Promise<object> {
  const of = (role: string) => messages.filter((each) => each.role === role).map((each) => each.content);
  const settings = { maxRetries: 0, maxOutputTokens: call.max_completion_tokens }; // the guard itself repeats a call
  const modelSettings = temperature === undefined ? settings : { ...settings, temperature };
  const said = await agent.generate(of('user'), { instructions: of('system'), abortSignal, modelSettings });
  // A prompt that comes back is no reply, though its examples look like one.
  const content = messages.reduce((text, each) => text.split(each.content).at(-1) ?? '', said.text);
  return {
    choices: [{ message: { content }, finish_reason: said.finishReason?.replace('-', '_') }],
    usage: { prompt_tokens: said.usage.inputTokens ?? 0, completion_tokens: said.usage.outputTokens ?? 0 },
  };
}
