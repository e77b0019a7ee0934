// Shows the messages of the open conversation, and says new answers to screen readers.
import {childrenOf, pathOf} from './conversation.js';
import {make} from './elements.js';
import {figuresText, MessageView} from './message_view.js';

const NEAR_END_PIXELS = 60;

// Says an answer in whole blocks while it arrives: a screen reader that was told each token would
// begin again with each.
class Announcer {
  constructor(region) {
    this.region = region;
    this.said = 0;
  }

  // `said` are blocks of the answer that were there before.
  begin(text, said) {
    this.said = said;
    this.region.replaceChildren(make('p', {}, text));
  }

  // The elements of `text` before `end` are complete.
  sayBlocks(text, end) {
    for (; this.said < end; ++this.said) {
      this.region.append(make('p', {}, text.children[this.said].textContent));
    }
  }

  say(text) {
    this.region.append(make('p', {}, text));
  }
}

export class Transcript {
  constructor({scroller, list, region, jump}, actions) {
    Object.assign(this, {scroller, list, jump, actions});
    this.announcer = new Announcer(region);
    this.views = new Map();
    this.follows = true;
    this.author = 'Cria';
    scroller.addEventListener('scroll', () => {
      this.follows =
          scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END_PIXELS;
      this.showJump();
    });
    jump.addEventListener('click', () => this.scrollToEnd());
    new ResizeObserver(() => this.follow()).observe(list);
  }

  // Whose the answers are of which nothing else is known. Takes effect when the conversation is
  // shown again.
  setAuthor(author) {
    this.author = author;
  }

  showJump() {
    this.jump.hidden = this.follows || !this.views.size;
  }

  // Stays at the end, unless the person scrolled away from it.
  follow() {
    if (this.follows) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.showJump();
  }

  scrollToEnd() {
    this.follows = true;
    this.follow();
  }

  // `answerOf` gives the answer that fills in a message, if there is one.
  show(conversation, answerOf) {
    const isOther = this.conversation !== conversation;
    if (isOther) this.views.clear();
    this.conversation = conversation;
    const path = pathOf(conversation);
    const views = new Map();
    for (const message of path) {
      const view = this.views.get(message.id) ?? new MessageView(message, this.actions);
      views.set(message.id, view);
    }
    const elements = [...views.values()].map((view) => view.element);
    // Elements that stay are not moved, so that they keep the focus.
    for (const [id, view] of this.views)
      if (!views.has(id)) view.element.remove();
    if (isOther) this.list.replaceChildren();
    elements.forEach((element, i) => {
      if (this.list.children[i] !== element)
        this.list.insertBefore(element, this.list.children[i] ?? null);
    });
    this.views = views;
    for (const message of path) this.updateMessage(message, answerOf(message));
    if (isOther)
      this.scrollToEnd();
    else
      this.follow();
  }

  updateMessage(message, answer) {
    const versions = childrenOf(this.conversation, message.parent);
    const index = versions.findIndex((version) => version.id === message.id);
    this.views.get(message.id)
        ?.update(
            {
              author: this.author,
              index,
              count: versions.length,
              previous: versions[index - 1],
              next: versions[index + 1]
            },
            answer);
  }

  beginAnswer(message) {
    const blocks = this.views.get(message.id)?.text.children.length ?? 0;
    // The last of them may grow.
    this.announcer.begin('Answering', Math.max(0, blocks - 1));
    this.scrollToEnd();
  }

  updateAnswer(answer) {
    const view = this.views.get(answer.message.id);
    if (!view || answer.conversation !== this.conversation) return;
    this.updateMessage(answer.message, answer);
    const blocks = view.text.children.length;
    this.announcer.sayBlocks(view.text, answer.isRunning ? Math.max(0, blocks - 1) : blocks);
    if (!answer.isRunning && !answer.error) {
      const end = answer.message.end === 'stopped' ? 'Stopped' : 'End of the answer';
      const figures = figuresText(answer.message.figures ?? {}, 'tokens per second');
      this.announcer.say([end, ...figures].join(', '));
    }
    this.follow();
  }

  // Undefined if the message is not shown.
  elementOf(message) {
    return this.views.get(message?.id)?.element;
  }

  editLast() {
    const last = [...this.views.values()].reverse().find((view) => view.isUser);
    last?.edit();
    last?.element.scrollIntoView({block: 'nearest'});
    return Boolean(last);
  }
}
