// What is typed is translated while it is typed.

import { Refusal, callForEvents, callForJson, checked, hasKey, keepKey } from "./api.js";
import { $, element } from "./dom.js";
import { nameOf, pairs, tag } from "./languages.js";
import { light, moveToWord, showWords } from "./words.js";

const TYPING_PAUSE_MS = 200;
const ALTERNATIVES = 4;
const LONGEST_IN_ADDRESS = 2000; // UTF-16 units of text
const AUTO = "auto";

const [source, target, text, output] = ["source", "target", "text", "translation"].map($);
const maxTextBytes = Number(document.documentElement.dataset.maxTextBytes);

let targets = new Map(); // of each source language: the languages into which it can be translated
let detected = ""; // the language of the text, where the server was asked for it
let calls = new AbortController(); // ends the calls about a text that has changed
let typing = 0; // the timer of the pause after a keystroke
let waiting = 0; // the timer of the error line
let retry = () => {}; // what was refused
let shown = null; // the request of the translation that is shown; null: it is not complete
let hasAskedForWords = false; // whether the alignments of that translation were asked for

// Translates the text that is shown once more, with options.
async function translateAgain(options) {
  const { translations } = await callForJson("v1/translate", { ...shown, options }, calls.signal);
  return checked(translations[0]);
}

// ---- Languages

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
  targets = pairs(models, document.documentElement.dataset.pivotLanguage);
  fill(source, [...targets.keys()], [new Option("Detect language", AUTO)]);
  source.value = targets.size === 1 ? [...targets.keys()][0] : AUTO;
  fillTargets();
  readAddress();
  await translate();
}

function fill(select, codes, first = []) {
  const options = codes.map((code) => new Option(nameOf(code), code));
  options.sort((one, other) => one.text.localeCompare(other.text, "en"));
  select.replaceChildren(...first, ...options);
}

function fillTargets() {
  const before = target.value || navigator.language.split("-")[0];
  const sources = source.value === AUTO ? [...targets.keys()] : [source.value];
  const codes = new Set(sources.flatMap((code) => [...(targets.get(code) ?? [])]));
  fill(target, [...codes]);
  if (codes.has(before)) target.value = before;
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
  light(null);
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
    if (error.detected && follow(error.detected)) return;
    if (!signal.aborted) show("");
    fail(error, translate);
  }
  if (!signal.aborted) output.ariaBusy = "false";
}

// Translates a text of this language into another one, where it cannot be translated into the one that is chosen.
function follow(code) {
  showDetected(code);
  const into = targets.get(code);
  if (!into?.size || into.has(target.value)) return false;
  const codes = [navigator.language.split("-")[0], ...[...target.options].map(({ value }) => value)];
  target.value = codes.find((each) => into.has(each));
  translate();
  return true;
}

async function stream(request, signal) {
  for await (const { textDelta, result } of callForEvents("v1/translate:stream", request, signal)) {
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
  const code = result.detectedLanguageCode ?? "";
  if (code === target.value && follow(code)) return;
  show(result.translatedText);
  showDetected(code);
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
      light(null);
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

// ---- Errors, and the key

function fail(error, again) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Refusal)) throw error;
  retry = again;
  if (error.status === 401) {
    $("key-form").hidden = false;
    $("key").focus();
    if (!hasKey()) return;
  }
  showError(error);
}

function showError(error) {
  const { message, retryAfterS: seconds } = error;
  $("error").hidden = false;
  $("again").hidden = !error.mayHelpToRetry;
  $("error-text").textContent = seconds ? `${message} Try again in ${count(seconds, "second")}.` : message;
  const over = () => ($("error-text").textContent = "The server takes calls again.");
  if (seconds) waiting = setTimeout(over, seconds * 1000);
}

function hideError() {
  clearTimeout(waiting);
  $("error").hidden = true;
  $("error-text").textContent = "";
}

function useKey(event) {
  event.preventDefault();
  keepKey($("key").value);
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
  if (!file.name.toLowerCase().endsWith(".txt")) throw new Refusal(`${file.name} is not a .txt file.`, 400);
  checkSize(file.name, file.size);
  const content = await file.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    throw new Refusal(`${file.name} is not text in UTF-8.`, 400);
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
  throw new Refusal(`${name} has ${number(bytes)} bytes; at most ${number(maxTextBytes)} can be translated.`, 400);
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
output.addEventListener("pointerover", (event) => light(shown && event.target));
output.addEventListener("pointerleave", () => light(null));
output.addEventListener("focusin", (event) => {
  light(shown && event.target);
  align();
});
output.addEventListener("focusout", () => light(null));
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
