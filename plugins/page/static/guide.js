// Fills the examples with the address of this server, and with languages that it translates.

import { callForJson } from "./api.js";
import { isSame } from "./languages.js";

function fill(values) {
  for (const place of document.querySelectorAll("var")) place.textContent = values[place.dataset.name] ?? place.textContent;
}

for (const place of document.querySelectorAll("var")) place.dataset.name = place.textContent;
fill({ address: new URL(".", location), text: "Good morning.", source: "en", target: "de" });
const { models = [] } = await callForJson("v1/models").catch(() => ({}));
const isEnglish = (code) => isSame(code, "en"); // as the text is
const model = models.find(({ sourceLanguageCodes }) => sourceLanguageCodes.some(isEnglish)) ?? models[0];
if (model) {
  const source = model.sourceLanguageCodes.find(isEnglish) ?? model.sourceLanguageCodes[0];
  fill({ source, target: model.targetLanguageCodes.find((code) => code !== source) });
}
