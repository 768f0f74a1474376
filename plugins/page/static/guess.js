// The language that a text looks like, where it is not the one that is chosen.

import { callForJson } from "./api.js";
import { $ } from "./dom.js";
import { isSame, nameOf } from "./languages.js";

const FEWEST_LETTERS = 20; // of a text whose language can be told
const LOOKED_AT = 1000; // characters, by the server
const SURE = 0.95;
const UNLIKELY = 0.02;

let looked = { text: "", chosen: "" }; // what the server was asked about last
let isRefused = false; // whether it detects no languages for this page

export function forget() {
  looked = { text: "", chosen: "" };
  $("guess").hidden = true;
}

const countOf = (kind, text) => (text.match(kind) ?? []).length;

// Whether a text has too few Latin letters to tell its language: other scripts say more.
export function isUnclear(text) {
  const letters = countOf(/\p{Script=Latin}/gu, text);
  return letters > 0 && letters < FEWEST_LETTERS;
}

// Shows what a text looks like, unless that is the language that is chosen. The server is not asked once more about a
// text that has only become a bit longer.
export async function look(text, chosen, signal, advise) {
  const beginning = text.slice(0, LOOKED_AT);
  if (countOf(/\p{L}/gu, beginning) < FEWEST_LETTERS) {
    forget();
    return;
  }
  const isKnown = looked.text && beginning.startsWith(looked.text) && beginning.length < 2 * looked.text.length;
  if (isRefused || (isKnown && looked.chosen === chosen)) return;
  let detections;
  try {
    ({ detections } = await callForJson("v1/detect", { contents: [beginning.toWellFormed()] }, signal));
  } catch (error) {
    if (error.name !== "AbortError") isRefused = !error.mayHelpToRetry;
    return;
  }
  looked = { text: beginning, chosen };
  const languages = detections[0].languages ?? [];
  const [best] = languages;
  const own = languages.find(({ languageCode }) => isSame(languageCode, chosen));
  const isOther = best?.confidence >= SURE && (own?.confidence ?? 0) < UNLIKELY && best !== own;
  if (isOther) show(best.languageCode, advise(best.languageCode));
  else $("guess").hidden = true;
}

// What is advised: words, or none where the button is of use.
function show(code, words) {
  $("guess-text").textContent = `This looks like ${nameOf(code)}. ${words}`;
  $("guess-take").textContent = `Translate from ${nameOf(code)}`;
  $("guess-take").value = code;
  $("guess-take").hidden = Boolean(words);
  $("guess").hidden = false;
}
