// What is typed is translated while it is typed, by the API of the server that the page comes from.
// Texts get into the page as text only (textContent, text nodes), never as HTML.

const TYPING_PAUSE_MS = 200;
const ALTERNATIVES = 4;
const LONGEST_IN_ADDRESS = 2000; // UTF-16 units of text
const KEY = "dragoman-api-key";
const AUTO = "auto";

const $ = (id) => document.getElementById(id);
const [source, target, text, marks, output] = ["source", "target", "text", "marks", "translation"].map($);
const maxTextBytes = Number(document.documentElement.dataset.maxTextBytes);
const pivot = document.documentElement.dataset.pivotLanguage;

let targets = new Map(); // of each source language: the languages into which it can be translated
let detected = ""; // the language of the text, where the server was asked for it
let calls = new AbortController(); // ends the calls about a text that has changed
let typing = 0; // the timer of the pause after a keystroke
let waiting = 0; // the timer of the error line
let retry = () => {}; // what was refused
let shown = null; // the request of the translation that is shown; null: it is not complete
let hasAskedForWords = false; // whether the alignments of that translation were asked for
const origins = new WeakMap(); // of each word of the translation: the places of the words that it comes from

// ---- Calls

// Why there is no translation; the status is that of HTTP, or 0 where nobody answered.
class Refusal extends Error {
  constructor(message, status = 0, retryAfterS = 0) {
    super(message);
    Object.assign(this, { status, retryAfterS });
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
  const { error } = await answer.json().catch(() => ({ error: { message: `The server answered ${answer.status}.` } }));
  throw new Refusal(error.message, answer.status, Number(answer.headers.get("retry-after")));
}

async function callForJson(path, content, signal) {
  const answer = await call(path, content, signal);
  return answer.json().catch(unreachable);
}

function unreachable(error) {
  throw error.name === "AbortError" ? error : new Refusal("The server cannot be reached.");
}

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(unreachable);
    if (done) return;
    const whole = (rest + value).split("\n\n");
    rest = whole.pop();
    for (const event of whole) {
      const data = JSON.parse(event.slice(event.indexOf("data: ") + "data: ".length));
      if (data.error) throw new Refusal(data.error.message, data.error.code);
      yield data;
    }
  }
}

// Translates the text that is shown once more, with options.
async function translateAgain(options) {
  const { translations } = await callForJson("v1/translate", { ...shown, options }, calls.signal);
  return checked(translations[0]);
}

function checked(result) {
  if (result.textError) throw new Refusal(result.textError.message, 400);
  return result;
}

// ---- Languages

const names = new Intl.DisplayNames(["en"], { type: "language" });

// Some models know their languages by codes such as "deu_Latn".
const tag = (code) => code.replaceAll("_", "-");

function nameOf(code) {
  try {
    return names.of(tag(code));
  } catch {
    return code;
  }
}

async function load() {
  hideError();
  const models = [];
  try {
    for (let token = ""; token !== undefined; ) {
      const page = await callForJson(`v1/models?pageToken=${encodeURIComponent(token)}`);
      models.push(...(page.models ?? []));
      token = page.nextPageToken;
    }
  } catch (error) {
    fail(error, load);
    return;
  }
  targets = pairs(models);
  fill(source, [...targets.keys()], [new Option("Detect language", AUTO)]);
  source.value = targets.size === 1 ? [...targets.keys()][0] : AUTO;
  fillTargets();
  readAddress();
  await translate();
}

function pairs(models) {
  const found = new Map();
  for (const { sourceLanguageCodes: from, targetLanguageCodes: into } of models) {
    for (const code of from) found.set(code, new Set([...(found.get(code) ?? []), ...into]));
  }
  for (const into of found.values()) {
    if (into.has(pivot)) for (const code of found.get(pivot) ?? []) into.add(code);
  }
  for (const [code, into] of found) into.delete(code);
  return found;
}

function fill(select, codes, first = []) {
  const options = codes.map((code) => new Option(nameOf(code), code));
  options.sort((one, other) => one.text.localeCompare(other.text, "en"));
  select.replaceChildren(...first, ...options);
}

function fillTargets() {
  const before = target.value || navigator.language.split("-")[0];
  const codes = source.value === AUTO ? new Set([...targets.values()].flatMap((into) => [...into])) : targets.get(source.value);
  fill(target, [...(codes ?? [])]);
  if (codes?.has(before)) target.value = before;
}

const from = () => (source.value === AUTO ? detected : source.value);

function showDetected(code) {
  detected = code;
  const option = [...source.options].find(({ value }) => value === AUTO);
  text.lang = tag(from());
  if (option) option.text = code ? `${nameOf(code)} (detected)` : "Detect language";
  $("swap").disabled = !targets.get(target.value)?.has(from());
}

function swap() {
  const [before, into] = [from(), target.value];
  const translation = shown && output.textContent;
  source.value = into;
  fillTargets();
  target.value = before;
  if (translation) text.value = translation;
  translate();
}

// ---- The translation

// Ends what is running, and shows that the translation is of another text.
function changed() {
  clearTimeout(typing);
  calls.abort();
  calls = new AbortController();
  shown = null;
  const characters = count([...text.value].length, "character");
  $("count").textContent = `${characters}, ${number(bytesOf(text.value))} of ${number(maxTextBytes)} bytes`;
  mark([]);
  output.classList.add("stale");
  $("copy").disabled = $("more").disabled = true;
  $("clear").disabled = !text.value;
  hideAlternatives();
  say("");
}

function soon() {
  changed();
  typing = setTimeout(translate, TYPING_PAUSE_MS);
}

async function translate() {
  changed();
  hideError();
  if (!target.value) return;
  writeAddress();
  const { signal } = calls;
  const request = {
    contents: [text.value.toWellFormed()],
    sourceLanguageCode: source.value,
    targetLanguageCode: target.value,
  };
  output.lang = tag(target.value);
  if (!text.value.trim()) {
    showDetected("");
    show("");
    return;
  }
  output.ariaBusy = "true";
  output.ariaLive = "polite";
  try {
    checkSize("The text", bytesOf(text.value));
    await stream(request, signal);
  } catch (error) {
    if (!signal.aborted) show("");
    fail(error, translate);
  }
  if (!signal.aborted) output.ariaBusy = "false";
}

async function stream(request, signal) {
  for await (const { textDelta, result } of events(await call("v1/translate:stream", request, signal))) {
    if (result) {
      finish(request, checked(result));
      return;
    }
    if (output.classList.contains("stale")) show("");
    output.append(textDelta);
  }
  throw new Refusal("The connection to the server was lost.");
}

function finish(request, result) {
  show(result.translatedText);
  showDetected(result.detectedLanguageCode ?? "");
  shown = { ...request, sourceLanguageCode: from() || AUTO };
  hasAskedForWords = false;
  $("copy").disabled = $("more").disabled = false;
  if (result.finishReason === "FINISH_REASON_LENGTH") say("The translation was cut off: it became too long.");
  if (result.finishReason === "FINISH_REASON_REPETITION") say("The translation was cut off: it repeated itself.");
}

function show(translation) {
  output.replaceChildren(translation);
  output.classList.remove("stale");
}

async function copy() {
  try {
    await navigator.clipboard.writeText(output.textContent);
    say("Copied");
  } catch {
    // Browsers let only pages that come over TLS, or from the same machine, write to the clipboard.
    getSelection().selectAllChildren(output);
    say("Press Ctrl+C to copy");
  }
}

// ---- Alternatives

async function toggleAlternatives() {
  if (!$("alternatives").hidden) {
    hideAlternatives();
    return;
  }
  hideError();
  try {
    const { alternatives = [] } = await translateAgain({ alternatives: ALTERNATIVES });
    showAlternatives([output.textContent, ...alternatives.map((each) => each.translatedText)]);
  } catch (error) {
    fail(error, toggleAlternatives);
  }
}

function hideAlternatives() {
  $("alternatives").hidden = true;
  $("more").ariaExpanded = "false";
}

// Shows those of the translations that are not the one above them; a click puts another one there.
function showAlternatives(translations) {
  const others = new Set(translations);
  others.delete(output.textContent);
  const items = [...others].map((translation) => {
    const button = element("button", translation);
    Object.assign(button, { type: "button", dir: "auto", lang: output.lang });
    button.addEventListener("click", () => {
      show(translation);
      mark([]);
      showAlternatives(translations);
      $("more").focus();
    });
    return button;
  });
  if (!items.length) items.push(element("p", "The model found no others."));
  $("alternatives").replaceChildren(...items.map((item) => element("li", item)));
  $("alternatives").hidden = false;
  $("more").ariaExpanded = "true";
}

function element(name, content) {
  const made = document.createElement(name);
  made.append(content);
  return made;
}

// ---- Words

// Asks for the alignments of the translation when somebody first looks for them: most translations need none.
async function align() {
  if (!shown || hasAskedForWords) return;
  hasAskedForWords = true;
  const [original] = shown.contents;
  try {
    const { translatedText, alignments = [] } = await translateAgain({ alignments: true });
    if (translatedText === output.textContent) showWords(translatedText, original, alignments);
  } catch (error) {
    // Not every model, nor every pair of languages, has alignments; the translation is good without them.
    if (!(error instanceof Refusal || error.name === "AbortError")) throw error;
  }
}

function showWords(translation, original, alignments) {
  const [places, sources] = [unitPlaces(translation), unitPlaces(original)];
  const words = new Map(); // by the place where a word begins
  for (const { sourceStart = 0, sourceEnd, targetStart = 0, targetEnd } of alignments) {
    const word = words.get(targetStart) ?? { end: places[targetEnd], from: [] };
    word.from.push([sources[sourceStart], sources[sourceEnd]]);
    words.set(targetStart, word);
  }
  const content = new DocumentFragment();
  let done = 0;
  for (const [start, word] of words) {
    const span = element("span", translation.slice(places[start], word.end));
    span.tabIndex = -1;
    span.title = word.from.map(([begin, end]) => original.slice(begin, end)).join(", ");
    origins.set(span, word.from);
    content.append(translation.slice(done, places[start]), span);
    done = word.end;
  }
  content.append(translation.slice(done));
  output.ariaLive = "off"; // it is the same text
  output.replaceChildren(content);
}

// Alignments count code points; strings of JavaScript count UTF-16 units.
function unitPlaces(string) {
  const places = [0];
  for (const character of string) places.push(places.at(-1) + character.length);
  return places;
}

// Lights up the words that a word comes from, unless the text has changed since.
function light(word) {
  mark((shown && origins.get(word)) || []);
}

function mark(places) {
  const content = new DocumentFragment();
  let done = 0;
  for (const [begin, end] of places.toSorted(([one], [other]) => one - other)) {
    content.append(text.value.slice(done, begin), element("mark", text.value.slice(begin, end)));
    done = end;
  }
  content.append(text.value.slice(done));
  marks.replaceChildren(content);
  const first = marks.querySelector("mark");
  const box = marks.parentElement;
  if (first && (first.offsetTop < box.scrollTop || first.offsetTop > box.scrollTop + box.clientHeight)) {
    box.scrollTop = first.offsetTop - box.clientHeight / 2;
  }
}

function moveToWord(event) {
  const words = [...output.children];
  const at = words.indexOf(document.activeElement);
  const [next, previous] = getComputedStyle(output).direction === "rtl" ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
  const places = { [next]: Math.min(at + 1, words.length - 1), [previous]: Math.max(at - 1, 0), Home: 0, End: words.length - 1 };
  if (!words.length || !(event.key in places)) return;
  event.preventDefault();
  words[places[event.key]].focus();
}

// ---- Errors, and the key

function fail(error, again) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Refusal)) throw error;
  retry = again;
  if (error.status === 401) {
    $("key-form").hidden = false;
    $("key").focus();
    if (!sessionStorage.getItem(KEY)) return;
  }
  showError(error);
}

function showError(error) {
  const message = error.message.replace(/^contents\[0\]: /, "The text ").replace(/[^.!?]$/, "$&.");
  const seconds = error.retryAfterS;
  $("error").hidden = false;
  $("again").hidden = !error.mayHelpToRetry;
  $("error-text").textContent = seconds ? `${message} Try again in ${count(seconds, "second")}.` : message;
  if (seconds) waiting = setTimeout(() => ($("error-text").textContent = "The server takes calls again."), seconds * 1000);
}

function hideError() {
  clearTimeout(waiting);
  $("error").hidden = true;
  $("error-text").textContent = "";
}

function useKey(event) {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("key").value);
  $("key").value = "";
  $("key-form").hidden = true;
  text.focus();
  retry();
}

// ---- Files, and the address of the page

async function open(file) {
  hideError();
  try {
    text.value = await textOf(file);
  } catch (error) {
    fail(error, () => open(file));
    return;
  }
  await translate();
}

async function textOf(file) {
  if (!file.name.toLowerCase().endsWith(".txt")) throw new Refusal(`${file.name} is not a .txt file`, 400);
  checkSize(file.name, file.size);
  const content = await file.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    throw new Refusal(`${file.name} is not text in UTF-8`, 400);
  }
}

function drop(event) {
  const carriesFile = event.dataTransfer.types.includes("Files");
  $("source-card").classList.toggle("dropping", carriesFile && event.type === "dragover");
  if (!carriesFile) return;
  event.preventDefault();
  if (event.type === "drop") open(event.dataTransfer.files[0]);
}

function writeAddress() {
  const kept = text.value.length <= LONGEST_IN_ADDRESS ? encodeURIComponent(text.value.toWellFormed()) : "";
  history.replaceState(null, "", `#${source.value}/${target.value}/${kept}`);
}

function readAddress() {
  const [wantedSource, wantedTarget, ...rest] = location.hash.slice(1).split("/");
  if (targets.has(wantedSource) || wantedSource === AUTO) source.value = wantedSource;
  fillTargets();
  if ([...target.options].some(({ value }) => value === wantedTarget)) target.value = wantedTarget;
  try {
    text.value = decodeURIComponent(rest.join("/")) || text.value;
  } catch {
    // The address was cut in the middle of a character.
  }
}

// ---- Words of the page

function checkSize(name, bytes) {
  if (bytes <= maxTextBytes) return;
  throw new Refusal(`${name} has ${number(bytes)} bytes; at most ${number(maxTextBytes)} can be translated`, 400);
}

const bytesOf = (string) => new TextEncoder().encode(string).length;
const number = (value) => value.toLocaleString("en");
const count = (value, thing) => `${number(value)} ${thing}${value === 1 ? "" : "s"}`;
const say = (message) => ($("note").textContent = message);

// ---- What people do

text.addEventListener("input", soon);
source.addEventListener("change", () => {
  fillTargets();
  showDetected("");
  translate();
});
target.addEventListener("change", () => translate());
$("swap").addEventListener("click", swap);
$("copy").addEventListener("click", copy);
$("more").addEventListener("click", toggleAlternatives);
$("clear").addEventListener("click", () => {
  text.value = "";
  text.focus();
  translate();
});
$("again").addEventListener("click", () => retry());
$("key-form").addEventListener("submit", useKey);
$("open").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", ({ target: field }) => {
  if (field.files.length) open(field.files[0]);
  field.value = "";
});
output.addEventListener("pointerenter", align);
output.addEventListener("pointerover", (event) => light(event.target));
output.addEventListener("pointerleave", () => mark([]));
output.addEventListener("focusin", (event) => {
  light(event.target);
  align();
});
output.addEventListener("focusout", () => mark([]));
output.addEventListener("keydown", moveToWord);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate();
});
for (const kind of ["dragover", "dragleave", "drop"]) document.addEventListener(kind, drop);
addEventListener("hashchange", () => {
  readAddress();
  translate();
});

load();
