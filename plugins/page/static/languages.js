// Languages: their names, and which pairs the models of the server translate.

const MOST_NAMED = 5; // languages in a sentence

const names = new Intl.DisplayNames(["en"], { type: "language" });
const and = new Intl.ListFormat("en");

// Some models know their languages by codes such as "deu_Latn".
export const tag = (code) => code.replaceAll("_", "-");

export function nameOf(code) {
  try {
    return names.of(tag(code));
  } catch {
    return code;
  }
}

// Whether two codes mean one language: "en-US" and "eng_Latn" do.
export function isSame(one, other) {
  const [a, b] = [one, other].map((code) => {
    try {
      return new Intl.Locale(tag(code)).language;
    } catch {
      return code;
    }
  });
  return a === b;
}

// Of each source language, the languages into which it can be translated: by a model, or over the pivot language.
export function pairs(models, pivot) {
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

// Says what can be translated into a language, to somebody whose text is in another one.
export function whatCanBe(targets, code, into) {
  const from = [...targets].filter(([, codes]) => codes.has(into)).map(([each]) => nameOf(each)).sort();
  if (!from.length || from.length > MOST_NAMED) return `${nameOf(code)} cannot be translated into ${nameOf(into)} here.`;
  return `Only ${and.format(from)} can be translated into ${nameOf(into)} here.`;
}
