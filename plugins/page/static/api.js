// Calls of the server that the page comes from, by its own API; docs/http.md describes it.

const KEY = "dragoman-api-key"; // in the storage of this tab, which ends with it

// What a visitor reads, by the reason of an error; docs/errors.md lists the reasons.
const WORDS = {
  SERVER_UNAVAILABLE: "The server does not answer.",
  DRAINING: "The server is shutting down.",
  LOADING: "The server is still starting.",
  MODEL_UNAVAILABLE: "The server cannot translate between these languages at the moment.",
  UNAUTHENTICATED: "The server does not accept this key.",
  RATE_LIMITED: "Too many translations in a short time.",
  CONCURRENCY_LIMITED: "Too many translations at once.",
  QUEUE_FULL: "The server is busy.",
  OVERLOADED: "The server is busy.",
  DEADLINE_UNREACHABLE: "The server is busy.",
  DEADLINE_EXCEEDED: "The translation took too long. Try a part of it.",
  ANSWER_TOO_LARGE: "The translation became too long. Try a part of it.",
  INVALID_REQUEST: "The server cannot translate this: it is too long, or a part of it is.",
  UNKNOWN_LANGUAGE_PAIR: "The server cannot translate between these languages.",
};
const FAILED = "The server made an error. Its operator finds more in its log.";

export const hasKey = () => sessionStorage.getItem(KEY) !== null;
export const keepKey = (key) => sessionStorage.setItem(KEY, key);

// Why there is no translation, in words for a visitor. The reason and its metadata are those of the server, and the status
// that of HTTP; what the page itself refuses has none.
export class Refusal extends Error {
  constructor(message, { reason = "", metadata = {}, status = 0, retryAfterS = 0, details = "" } = {}) {
    super(message || (WORDS[reason] ?? FAILED));
    Object.assign(this, { reason, metadata, status, retryAfterS, details });
  }

  // Whether nobody answers who could translate: a server that has stopped or starts, or a proxy in front of none.
  get isAway() {
    return this.reason === "SERVER_UNAVAILABLE" || this.status === 503;
  }

  // Whether there is too much to do now, perhaps for this very page.
  get isBusy() {
    return ["QUEUE_FULL", "OVERLOADED", "CONCURRENCY_LIMITED"].includes(this.reason);
  }

  get mayHelpToRetry() {
    return this.isAway || this.status === 429 || this.status >= 500;
  }
}

export const isRunning = () => fetch("health").then(({ ok }) => ok, () => false);

async function call(path, content, signal) {
  const body = content && JSON.stringify(content);
  const headers = { "content-type": "application/json", ...keyHeader() };
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body, signal }).catch(unreachable);
  if (answer.ok) return answer;
  const why = await answer.json().catch(() => ({}));
  signal?.throwIfAborted();
  throw refusal(answer.status, why, answer.headers.get("retry-after"));
}

function keyHeader() {
  const key = sessionStorage.getItem(KEY);
  return key ? { "x-api-key": key } : {};
}

// The refusal that an answer is: in the JSON of this server's own API, of its API for files, or of something else.
function refusal(status, { error, reason, metadata }, retryAfter) {
  const info = error?.details?.find((detail) => detail.reason) ?? { reason, metadata };
  const gateway = status === 502 || status === 503 || status === 504 ? "SERVER_UNAVAILABLE" : "";
  return new Refusal("", {
    reason: info.reason ?? gateway,
    metadata: info.metadata,
    status,
    retryAfterS: Number(retryAfter),
    details: error?.message ?? error,
  });
}

export async function callForJson(path, content, signal) {
  const answer = await call(path, content, signal);
  return answer.json().catch(unreachable);
}

function unreachable(error) {
  throw error.name === "AbortError" ? error : new Refusal("", { reason: "SERVER_UNAVAILABLE" });
}

// The data of server-sent events, each as soon as it comes.
export async function* callForEvents(path, content, signal) {
  const answer = await call(path, content, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(unreachable);
    if (done) return;
    const whole = (rest + value).split("\n\n");
    rest = whole.pop();
    for (const event of whole) {
      const data = JSON.parse(event.slice(event.indexOf("data: ") + "data: ".length));
      if (data.error) throw refusal(data.error.code, data);
      yield data;
    }
  }
}

// The result of one text; an error may stand in its place.
export function checked(result) {
  const { textError } = result;
  if (textError) throw new Refusal("", { reason: textError.reason, metadata: textError.metadata, status: 400 });
  return result;
}

// Sends a form and gives the JSON of the answer; says on the way which part of the form has been sent, 0 to 1.
export function sendForm(path, form, timeoutMs, signal, say) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest(); // fetch says nothing of uploads
    request.open("POST", path);
    request.responseType = "json";
    const headers = { "connect-timeout-ms": timeoutMs, ...keyHeader() };
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", ({ loaded, total }) => say(loaded / total));
    request.addEventListener("load", () => {
      const { status, response } = request;
      if (status === 200 && response) resolve(response);
      else reject(refusal(status, response ?? {}, request.getResponseHeader("retry-after")));
    });
    request.addEventListener("error", () => reject(new Refusal("", { reason: "SERVER_UNAVAILABLE" })));
    request.addEventListener("abort", () => reject(signal.reason));
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

export async function callForBlob(path, signal) {
  const answer = await call(path, undefined, signal);
  return answer.blob().catch(unreachable);
}
