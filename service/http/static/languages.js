// Languages: their names, and which pairs the models of the server translate.

const names = new Intl.DisplayNames(["en"], { type: "language" });

// Some models know their languages by codes such as "deu_Latn".
export const tag = (code) => code.replaceAll("_", "-");

export function nameOf(code) {
  try {
    return names.of(tag(code));
  } catch {
    return code;
  }
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
