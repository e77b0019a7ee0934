// The system prompt and the sampling of the open conversation.
import {SAMPLING} from './conversation.js';
import {make} from './elements.js';

export class SettingsView {
  // `onChange` is called with the changed settings.
  constructor({system, sampling, reset}, onChange) {
    this.system = system;
    this.inputs = new Map();
    this.onChange = onChange;
    system.addEventListener('input', () => this.change({system: system.value}));
    for (const option of SAMPLING) sampling.append(this.makeOption(option));
    reset.addEventListener('click', () => {
      this.change({sampling: {}});
      this.show(this.settings);
    });
  }

  makeOption(option) {
    const {name, label, min, max, step, hint} = option;
    const input = make('input', {
      type: 'number',
      id: `option-${name}`,
      min,
      max,
      step: 'any',
      inputmode: step < 1 ? 'decimal' : 'numeric',
      placeholder: 'default',
      'aria-describedby': `hint-${name}`
    });
    input.addEventListener('input', () => this.changeOption(option, input));
    input.addEventListener('keydown', (event) => this.stepOption(event, option, input));
    this.inputs.set(name, input);
    return make('div', {class: 'option'}, make('label', {for: input.id
                }, label), input, make('small', {id: `hint-${name}`}, hint));
  }

  // The arrow keys begin at the server's value if none is set, and move in steps that mean
  // something.
  stepOption(event, {min, max, step}, input) {
    if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return;
    event.preventDefault();
    const value = Number(input.value || input.placeholder);
    const moved = (Number.isFinite(value) ? value : min) + (event.key === 'ArrowUp' ? step : -step);
    input.value = String(Number(Math.min(max, Math.max(min, moved)).toFixed(2)));
    input.dispatchEvent(new Event('input'));
  }

  changeOption({name, min, max, step}, input) {
    const value = Number(input.value);
    const isEmpty = input.value === '' && !input.validity.badInput;
    const isValid = isEmpty ||
        (!input.validity.badInput && value >= min && value <= max &&
         (step < 1 || Number.isInteger(value)));
    input.setCustomValidity(
        isValid ? '' : `from ${min} to ${max}${step < 1 ? '' : ', without a fraction'}`);
    input.setAttribute('aria-invalid', String(!isValid));
    if (!isValid) return input.reportValidity();
    const sampling = {...this.settings.sampling};
    if (isEmpty)
      delete sampling[name];
    else
      sampling[name] = value;
    return this.change({sampling});
  }

  change(changed) {
    this.settings = {...this.settings, ...changed};
    this.onChange(this.settings);
  }

  show(settings) {
    this.settings = settings;
    if (this.system.value !== settings.system) this.system.value = settings.system;
    for (const [name, input] of this.inputs) {
      input.value = settings.sampling[name] ?? '';
      input.setCustomValidity('');
      input.removeAttribute('aria-invalid');
    }
  }

  // What the server does where nothing is set.
  showDefaults(defaults) {
    for (const [name, input] of this.inputs) {
      const value = defaults[name];
      if (Number.isFinite(value) && name !== 'seed' && value >= 0) {
        // The server may have rounded to 32 bits.
        input.placeholder = String(Number(value.toFixed(4)));
      }
    }
  }
}
