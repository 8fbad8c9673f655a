// Runs one turn through the published SDK. The job comes as JSON on stdin, what the SDK saw goes as JSON to stdout:
// { codex, thread, resume?, input, turn?, abortAt?, abortOn? } -> { id, events, error }. With `abortOn`, a FIFO, the turn
// is one call of `run`, which is aborted once somebody has written there.
import { readFile } from "node:fs/promises";
import { Codex } from "@openai/codex-sdk";

let text = "";
for await (const chunk of process.stdin) text += chunk;
const job = JSON.parse(text);

const codex = new Codex(job.codex);
const thread = job.resume ? codex.resumeThread(job.resume, job.thread) : codex.startThread(job.thread);
const stop = new AbortController();
const events = [];
let error = null;
try {
  if (job.abortOn) {
    readFile(job.abortOn).then(() => stop.abort());
    await thread.run(job.input, { ...job.turn, signal: stop.signal });
  }
  const turn = await thread.runStreamed(job.input, { ...job.turn, signal: stop.signal });
  for await (const event of turn.events) {
    events.push(event);
    if (event.type === job.abortAt) stop.abort();
  }
} catch (caught) {
  error = { name: caught.name, message: caught.message };
}
process.stdout.write(JSON.stringify({ id: thread.id, events, error }));
