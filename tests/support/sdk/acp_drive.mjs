// One session through the published client side of the protocol. The job comes as JSON on stdin, what the client saw
// goes as JSON to stdout: { command, args, cwd, prompts, choose, cancelAt? } -> { agent, updates, asked, stops }.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { PROTOCOL_VERSION, client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

let text = "";
for await (const chunk of process.stdin) text += chunk;
const job = JSON.parse(text);

const server = spawn(job.command, job.args, { stdio: ["pipe", "pipe", "inherit"], env: job.env, cwd: job.cwd });
const gone = new Promise((resolve) => server.on("exit", resolve));
const stream = ndJsonStream(Writable.toWeb(server.stdin), Readable.toWeb(server.stdout));
const updates = [];
const asked = [];
const stops = [];
let cancel = () => {};
const app = client({ name: "tests" })
  .onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params.update);
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    asked.push(params);
    if (job.cancelAt === "permission") {
      cancel();
      return { outcome: { outcome: "cancelled" } };
    }
    return { outcome: { outcome: "selected", optionId: job.choose } };
  });
const agent = await app.connectWith(stream, async (context) => {
  const capabilities = { fs: { readTextFile: true, writeTextFile: true }, terminal: true };
  const greeted = await context.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: capabilities,
  });
  const opened = await context.request(methods.agent.session.new, { cwd: job.cwd, mcpServers: [] });
  const sessionId = opened.sessionId;
  cancel = () => context.notify(methods.agent.session.cancel, { sessionId });
  for (const prompt of job.prompts) {
    const given = { sessionId, prompt: [{ type: "text", text: prompt }] };
    stops.push((await context.request(methods.agent.session.prompt, given)).stopReason);
  }
  return greeted.agentInfo;
});
server.stdin.end();
const status = await gone;
process.stdout.write(JSON.stringify({ agent, updates, asked, stops, status }));
