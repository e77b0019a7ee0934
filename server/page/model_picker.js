// Which of several models answers. A server with one shows its name instead.
import {make} from './elements.js';

const KEY = 'cria.model';

// The model with this name, else one that is loaded already, else the first that did not fail.
export function chooseModel(models, name) {
  return models.find(({id}) => id === name) ??
      models.find(({status}) => status?.value === 'loaded') ??
      models.find(({status}) => !status?.failed) ?? models[0];
}

// The name of a model, with what is known of its state.
function labelOf({id, status}) {
  const state = status?.failed ? 'failed' : status?.value;
  return state && state !== 'unloaded' ? `${id} (${state})` : String(id);
}

export class ModelPicker {
  // `storage` keeps the choice; `onChange` is called with the chosen model.
  constructor(select, storage, onChange) {
    Object.assign(this, {select, storage});
    this.models = [];
    select.addEventListener('change', () => {
      try {
        storage.setItem(KEY, select.value);
      } catch {
        // It lasts until the page is closed.
      }
      onChange(this.models.find(({id}) => id === select.value));
    });
  }

  get hasChoice() {
    return this.models.length > 1;
  }

  // Takes the list of the server's models, and returns the one that is chosen.
  show(models) {
    this.models = models;
    const chosen = chooseModel(models, this.select.value || this.storage.getItem(KEY));
    this.select.hidden = !this.hasChoice;
    const labels = models.map(labelOf);
    // The list may be open; it changes only if there is something new.
    if (labels.join('\n') !== this.labels) {
      this.labels = labels.join('\n');
      this.select.replaceChildren(
          ...models.map(({id}, i) => make('option', {value: id}, labels[i])));
    }
    if (chosen) this.select.value = chosen.id;
    return chosen;
  }
}
