// The answers that arrive, of all conversations, and those that failed.
import {Answer} from './answer.js';

export class Answers {
  // `onChange` is called with an answer once for all that arrived since the last picture, and at
  // the end.
  constructor({api, store, graph}, onChange) {
    Object.assign(this, {api, store, graph, onChange});
    this.answers = new Map();  // By the message's id.
  }

  // Undefined if the message does not arrive and did not fail.
  get(message) {
    return this.answers.get(message.id);
  }

  forget(message) {
    this.answers.delete(message.id);
  }

  runningIn(conversationId) {
    return [...this.answers.values()].find(
        (answer) => answer.isRunning && answer.conversation.id === conversationId);
  }

  stopAllOf(conversationId) {
    for (const [messageId, answer] of this.answers) {
      if (answer.conversation.id !== conversationId) continue;
      answer.stop();
      this.answers.delete(messageId);
    }
  }

  // The page is being closed.
  leave() {
    for (const answer of this.answers.values()) answer.leave();
  }

  // Lets the model write a message, or the rest of it, to the end. `server` is a promise as for
  // Answer.run.
  async run(conversation, message, server) {
    const answer = new Answer(conversation, message, {
      onChange: (changed) => this.scheduleChange(changed),
      onSave: () => this.store.get(conversation.id) && this.store.save(conversation),
      onToken: (time) => this.graph.token(time),
    });
    this.answers.set(message.id, answer);
    this.store.save(conversation);
    this.graph.begin();
    await answer.run(this.api, server);
    this.graph.end(message.figures?.tokens_per_second);
    if (!answer.error) this.answers.delete(message.id);
  }

  scheduleChange(answer) {
    if (!answer.isRunning) {
      this.onChange(answer);
      return;
    }
    if (answer.isScheduled) return;
    answer.isScheduled = true;
    requestAnimationFrame(() => {
      answer.isScheduled = false;
      if (answer.isRunning) this.onChange(answer);
    });
  }
}
