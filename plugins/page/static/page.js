// What is typed is translated while it is typed.

import * as address from "./address.js";
import { Refusal, callForEvents, callForJson, checked } from "./api.js";
import { $, element, leave } from "./dom.js";
import { judge, markDoubts } from "./doubts.js";
import * as files from "./files.js";
import * as guess from "./guess.js";
import { nameOf, pairs, tag, whatCanBe } from "./languages.js";
import { say, sayBriefly } from "./note.js";
import { patiently } from "./patience.js";
import { textOf } from "./plain.js";
import * as problems from "./problems.js";
import { light, moveToWord, showWords } from "./words.js";

const TYPING_PAUSE_MS = 200;
const ALTERNATIVES = 4;
const AUTO = "auto";
const ESTIMATES = { qualityEstimate: true };
const UNCLEAR = "The language of such a short text is not clear: choose it.";

const [source, target, text, output] = ["source", "target", "text", "translation"].map($);
const [maxTextBytes, maxFileBytes] = ["maxTextBytes", "maxFileBytes"].map((name) =>
  Number(document.documentElement.dataset[name]),
);
const suffixes = $("file").accept.split(", ");

let targets = new Map(); // of each source language: the languages into which it can be translated
let detected = ""; // the language of the text, where the server was asked for it
let models = []; // of the server
let calls = new AbortController(); // ends the calls about a text that has changed
let typing = 0; // the timer of the pause after a keystroke
let shown = null; // the request of the translation that is shown; null: it is not complete
let hasAskedForWords = false; // whether the alignments of that translation were asked for

// Translates the text that is shown once more, with options.
async function translateAgain(options) {
  const { signal } = calls;
  const request = { ...shown, options };
  const { translations } = await patiently(() => callForJson("v1/translate", request, signal), signal);
  return checked(translations[0]);
}

// ---- Languages

async function load() {
  models = [];
  try {
    for (let token = ""; token !== undefined; ) {
      const page = await callForJson(`v1/models?pageToken=${encodeURIComponent(token)}`);
      models.push(...(page.models ?? []));
      token = page.nextPageToken;
    }
  } catch (error) {
    problems.fail(error, load);
    return;
  }
  problems.succeed();
  targets = pairs(models, document.documentElement.dataset.pivotLanguage);
  fill(source, [...targets.keys()], [new Option("Detect language", AUTO)]);
  source.value = targets.size === 1 ? [...targets.keys()][0] : AUTO;
  fillTargets();
  chooseLanguages();
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
  // Text and translation change places: both must be there.
  if (output.ariaBusy === "true") {
    say("Wait for the translation, then swap.");
    return;
  }
  const [before, into] = [from(), target.value];
  const translation = shown && output.textContent;
  source.value = into;
  fillTargets();
  target.value = before;
  if (translation) text.value = translation;
  translateAll();
}

// Says why texts of a language are not translated, and what is.
function strange(code) {
  return `This looks like ${nameOf(code)}. ${whatCanBe(targets, code, target.value)}`;
}

// Says what the model of the languages is for, where its maker says it, and there are not several.
function showPurpose() {
  const fitting = models.filter(
    ({ sourceLanguageCodes, targetLanguageCodes }) =>
      targetLanguageCodes.includes(target.value) && (!from() || sourceLanguageCodes.includes(from())),
  );
  const [note, ...others] = new Set(fitting.map((model) => model.note ?? ""));
  $("purpose").textContent = note && !others.length ? `This model is for ${note}.` : "";
  $("purpose").hidden = !$("purpose").textContent;
}

// ---- The translation

// Ends what is running, and shows that the translation is of another text.
function changed() {
  clearTimeout(typing);
  calls.abort();
  calls = new AbortController();
  shown = null;
  output.ariaBusy = String(Boolean(text.value.trim()));
  const characters = [...text.value].length;
  $("count").textContent = `${characters.toLocaleString("en")} character${characters === 1 ? "" : "s"}`;
  light(null);
  output.classList.add("stale");
  if (document.activeElement !== output) leave(output.closest(".card"), text);
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
  problems.hideOld();
  if (!target.value) return;
  address.write(source.value, target.value, text.value);
  const { signal } = calls;
  const request = {
    contents: [text.value.toWellFormed()],
    sourceLanguageCode: source.value,
    targetLanguageCode: target.value,
  };
  output.lang = tag(target.value);
  showPurpose();
  if (!text.value.trim()) {
    showDetected("");
    guess.forget();
    problems.hide();
    show("");
    return;
  }
  output.ariaLive = "polite";
  try {
    checkText();
    await patiently(() => stream(request, signal), signal);
    problems.succeed();
  } catch (error) {
    if (isStrange(error) && follow(error.metadata.source_language_code)) return;
    // Where the server is away, the visitor keeps what there is of a translation.
    if (error.isAway) output.classList.add("stale");
    else if (!signal.aborted) show("");
    if (isStrange(error) && guess.isUnclear(text.value)) chooseOneself();
    else problems.fail(inWords(error), translate);
  }
  if (!signal.aborted) output.ariaBusy = "false";
}

// Whether a text is in a language, as detected, from which it cannot be translated as the visitor asks.
const isStrange = ({ reason, metadata }) =>
  source.value === AUTO && reason === "UNKNOWN_LANGUAGE_PAIR" && Boolean(metadata?.source_language_code);

function inWords(error) {
  return isStrange(error) ? new Refusal(strange(error.metadata.source_language_code), { status: 400 }) : error;
}

// Leaves the language of a short text to the visitor: what it looks like is often wrong.
function chooseOneself() {
  problems.succeed();
  showDetected("");
  say(UNCLEAR);
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
  for await (const { textDelta, result } of callForEvents("v1/translate:stream", { ...request, options: ESTIMATES }, signal)) {
    if (result) {
      finish(request, checked(result));
      return;
    }
    if (output.classList.contains("stale")) show("");
    output.append(textDelta);
  }
  throw new Refusal("", { reason: "SERVER_UNAVAILABLE" });
}

function finish(request, result) {
  const code = result.detectedLanguageCode ?? "";
  if (code === target.value && follow(code)) return;
  judge(result);
  show(result.translatedText);
  showDetected(code);
  showPurpose();
  const isSame = result.translatedText.trim() === text.value.trim();
  if (source.value === AUTO && !code && isSame && guess.isUnclear(text.value)) say(UNCLEAR);
  shown = { ...request, sourceLanguageCode: from() || AUTO };
  $("copy").disabled = $("more").disabled = false;
  if (source.value !== AUTO) guess.look(text.value, source.value, calls.signal, advise);
}

const advise = (code) => (targets.get(code)?.size ? "" : whatCanBe(targets, code, target.value));

function takeGuess() {
  source.value = $("guess-take").value;
  text.focus();
  changeSource();
}

function changeSource() {
  fillTargets();
  showDetected("");
  guess.forget();
  translateAll();
}

function translateAll() {
  if (files.isOpen()) translateFile();
  return translate();
}

function show(translation) {
  output.replaceChildren(translation);
  say(markDoubts());
  output.classList.remove("stale");
  hasAskedForWords = false;
}

async function copy() {
  try {
    await navigator.clipboard.writeText(output.textContent);
    sayBriefly("Copied");
  } catch {
    // Browsers let only pages that come over TLS, or from the same machine, write to the clipboard.
    getSelection().selectAllChildren(output);
    sayBriefly("It is selected: copy it");
  }
}

// ---- Alternatives

async function toggleAlternatives() {
  if (!$("alternatives").hidden) {
    hideAlternatives();
    return;
  }
  problems.hideOld();
  try {
    const { alternatives = [] } = await translateAgain({ alternatives: ALTERNATIVES });
    problems.succeed();
    showAlternatives([output.textContent, ...alternatives.map((each) => each.translatedText)]);
  } catch (error) {
    problems.fail(error, toggleAlternatives);
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
    if (translatedText !== output.textContent) return;
    showWords(translatedText, original, alignments);
    markDoubts();
  } catch (error) {
    // Not every model, nor every pair of languages, has alignments; the translation is good without them.
    if (!(error instanceof Refusal || error.name === "AbortError")) throw error;
  }
}

// ---- Files, and the address of the page

// Opens a file: plain text in the field, where it fits there; all others are translated as a whole.
async function open(file, ...others) {
  problems.hideOld();
  const suffix = file.name.match(/\.[^.]*$/)?.[0].toLowerCase();
  try {
    if (others.length) throw new Refusal("Drop one file at a time.");
    if (!suffixes.includes(suffix)) throw new Refusal(`${file.name} cannot be opened here. Files can be ${suffixes.join(", ")}.`);
    if (file.size > maxFileBytes) throw new Refusal(`${file.name} is too large: a file may have ${size(maxFileBytes)}.`);
    if (suffix === ".txt" && file.size <= maxTextBytes) {
      text.value = await textOf(file);
      files.close();
      await translate();
      return;
    }
  } catch (error) {
    problems.fail(error, () => open(file));
    return;
  }
  await translateFile(file);
}

// Translates a file, or once more the one that is open.
async function translateFile(file) {
  try {
    await files.translate(file, source.value, target.value);
    problems.succeed();
  } catch (error) {
    problems.fail(inWords(error), () => translateFile(), { isLeft: true });
  }
}

function drop(event) {
  const carriesFile = event.dataTransfer.types.includes("Files");
  $("source-card").classList.toggle("dropping", carriesFile && event.type === "dragover");
  if (!carriesFile) return;
  event.preventDefault();
  if (event.type === "drop") open(...event.dataTransfer.files);
}

// Chooses the languages of the address.
function chooseLanguages() {
  const wanted = address.read();
  if (targets.has(wanted.source) || wanted.source === AUTO) source.value = wanted.source;
  fillTargets();
  if ([...target.options].some(({ value }) => value === wanted.target)) target.value = wanted.target;
}

// ---- Words of the page

function checkText() {
  if (new TextEncoder().encode(text.value).length <= maxTextBytes) return;
  throw new Refusal(
    `The text is too large: it may have ${size(maxTextBytes)}. A file may have ${size(maxFileBytes)}: open one.`,
  );
}

// Bytes as people count them.
function size(bytes) {
  const [unit, bytesOfUnit] = bytes < 1e6 ? ["kilobyte", 1e3] : ["megabyte", 1e6];
  const format = { style: "unit", unit, maximumSignificantDigits: 2, roundingMode: "floor" };
  return new Intl.NumberFormat("en", format).format(bytes / bytesOfUnit);
}

// ---- What people do

text.addEventListener("input", soon);
source.addEventListener("change", changeSource);
target.addEventListener("change", translateAll);
$("guess-take").addEventListener("click", takeGuess);
$("swap").addEventListener("click", swap);
$("copy").addEventListener("click", copy);
$("more").addEventListener("click", toggleAlternatives);
$("clear").addEventListener("click", () => {
  text.value = "";
  text.focus();
  translate();
});
$("open").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", ({ target: field }) => {
  if (field.files.length) open(field.files[0]);
  field.value = "";
});
$("document-close").addEventListener("click", files.close);
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
  chooseLanguages();
  text.value = address.read().text || text.value;
  translate();
});

text.value ||= address.read().text || address.longText();
load();
