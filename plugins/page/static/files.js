// A file that is translated as a whole, and its translation to be saved.

import { Refusal, callForBlob, sendForm } from "./api.js";
import { $, leave } from "./dom.js";
import { nameOf } from "./languages.js";

const LONGEST_MS = 3_600_000;

let calls = new AbortController(); // ends the calls about the file
let file = null; // that is shown

export const isOpen = () => file !== null;

// Translates a file; the one that is open where none is given.
export async function translate(given, source, target) {
  const chosen = given ?? file;
  close();
  file = chosen;
  calls = new AbortController();
  const { signal } = calls;
  $("document").hidden = false;
  $("document-name").textContent = file.name;
  $("document").scrollIntoView({ block: "nearest" });
  say("Sending", 0, "Cancel");
  try {
    const translated = await callForTranslation(source, target, signal);
    $("document-save").href = URL.createObjectURL(translated);
    $("document-save").download = file.name.replace(/\.[^.]*$/, `.${target}$&`);
    $("document-save").hidden = false;
    say(`Translated into ${nameOf(target)}`, null, "Close");
  } catch (error) {
    if (signal.aborted) return;
    say("Not translated", null, "Close");
    throw withWords(error);
  }
}

async function callForTranslation(source, target, signal) {
  const form = new FormData();
  for (const [name, value] of Object.entries({ source, target, file })) form.append(name, value);
  const progress = (part) => (part < 1 ? say("Sending", part, "Cancel") : say("Translating", undefined, "Cancel"));
  const { translatedFileUrl } = await sendForm("translate_file", form, LONGEST_MS, signal, progress);
  // Relative, as all else: a proxy may serve this page under a path.
  return callForBlob(new URL(translatedFileUrl).pathname.replace(/^.*\/(?=download_file\/)/, ""), signal);
}

// The part is what is done of it: a number, undefined where that is not known, null at the end.
function say(note, part, button) {
  $("document-note").textContent = note;
  $("document-progress").hidden = part === null;
  if (part === undefined) $("document-progress").removeAttribute("value");
  else $("document-progress").value = part;
  $("document-close").textContent = button;
}

export function close() {
  calls.abort();
  file = null;
  leave($("document"), $("open"));
  $("document").hidden = $("document-save").hidden = true;
  URL.revokeObjectURL($("document-save").href);
}

function withWords(error) {
  if (!(error instanceof Refusal) || error.reason !== "INVALID_REQUEST") return error;
  const isUnreadable = /^file: (?!must|takes)/.test(error.details);
  const why = isUnreadable
    ? "cannot be read. It may be damaged, or not be what its name says."
    : "is too large, or a part of it is. Try less of it.";
  return new Refusal(`${file.name} ${why}`, { status: error.status });
}
