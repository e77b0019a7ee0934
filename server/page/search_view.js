// The field with which conversations are searched, and the marks of what was found in the open one.
import {findAll, searchConversations, searchPattern} from './search.js';

const NAME = 'search';  // Of the marks, in page.css.
const MAX_MARKS = 1000;
const SETTLED_MS = 400;  // After which the number of results is said.

export class SearchView {
  // `onChange` is called when the list of results is another one, `onEnter` to open the first.
  constructor({input, status}, onChange, onEnter) {
    Object.assign(this, {input, status});
    this.pattern = null;
    input.addEventListener('input', () => {
      this.pattern = searchPattern(input.value);
      onChange();
    });
    input.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape' && input.value) {
        event.stopPropagation();
        this.clear();
        onChange();
      } else if (event.key === 'Enter') {
        event.preventDefault();
        onEnter();
      }
    });
  }

  clear() {
    this.input.value = '';
    this.pattern = null;
  }

  // What to show of the conversations: all of them, or those that are found.
  select(conversations) {
    if (!this.pattern) {
      this.say('');
      return conversations.map((conversation) => ({conversation}));
    }
    const results = searchConversations(this.pattern, conversations);
    const count = results.length;
    this.say(
        count === 0     ? 'Nothing was found.' :
            count === 1 ? 'One conversation was found.' :
                          `${count} conversations were found.`);
    return results;
  }

  // Not for each key: a screen reader would begin again.
  say(text) {
    if (text === this.said) return;
    this.said = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.status.textContent = text;
    }, text ? SETTLED_MS : 0);
  }

  // Marks what was found in the messages without changing their elements, and returns the first
  // mark at or below `from`, as a range.
  mark(root, from = root) {
    // Browsers without such marks show the messages as they are.
    if (typeof Highlight === 'undefined') return null;
    CSS.highlights.delete(NAME);
    if (!this.pattern) return null;
    const ranges = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node && ranges.length < MAX_MARKS;
         node = walker.nextNode()) {
      if (!node.parentElement.closest('.text, .files')) continue;
      for (const [begin, end] of findAll(this.pattern, node.data, MAX_MARKS)) {
        const range = new Range();
        range.setStart(node, begin);
        range.setEnd(node, end);
        ranges.push(range);
      }
    }
    if (ranges.length) CSS.highlights.set(NAME, new Highlight(...ranges));
    return ranges.find((range) => from.contains(range.startContainer)) ?? ranges[0] ?? null;
  }
}
