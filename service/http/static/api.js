// Calls of the server that the page comes from, by its own API; docs/http.md describes it.

const KEY = "dragoman-api-key"; // in the storage of this tab, which ends with it

export const hasKey = () => sessionStorage.getItem(KEY) !== null;
export const keepKey = (key) => sessionStorage.setItem(KEY, key);

// Why there is no translation; the status is that of HTTP, or 0 where nobody answered. `detected` is the language of a
// text that cannot be translated from it.
export class Refusal extends Error {
  constructor(message, status = 0, retryAfterS = 0, detected = "") {
    super(message);
    Object.assign(this, { status, retryAfterS, detected });
  }

  get mayHelpToRetry() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

async function call(path, content, signal) {
  const headers = { "content-type": "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key) headers["x-api-key"] = key;
  const body = content && JSON.stringify(content);
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body, signal }).catch(unreachable);
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({ error: { message: `the server answered ${answer.status}` } }));
  throw new Refusal(sentence(error.message), answer.status, Number(answer.headers.get("retry-after")));
}

export async function callForJson(path, content, signal) {
  const answer = await call(path, content, signal);
  return answer.json().catch(unreachable);
}

function unreachable(error) {
  throw error.name === "AbortError" ? error : new Refusal("The server cannot be reached.");
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
      if (data.error) throw new Refusal(sentence(data.error.message), data.error.code);
      yield data;
    }
  }
}

// The result of one text; an error may stand in its place.
export function checked(result) {
  const { textError } = result;
  if (textError) throw new Refusal(sentence(textError.message), 400, 0, textError.metadata?.source_language_code);
  return result;
}

// Messages of the server begin with the field that is wrong, if there is one, and with a small letter.
function sentence(message) {
  const whole = message.replace(/^contents\[0\]: /, "the text ").replace(/[^.!?]$/, "$&.");
  return whole.charAt(0).toUpperCase() + whole.slice(1);
}
