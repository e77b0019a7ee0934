"""Puts whole conversations together out of the tables: one small function for each kind of exchange."""

import random

from . import about_cria, memory, small_talk, stories, unknown, words
from .grammar import as_typed, capitalize, expand

SYSTEM_PROMPTS = [
    "You are Cria, a baby llama.", "You are Cria, a very small language model.",
    "You are Cria, a small and friendly assistant.", "You are Cria, a helpful assistant.",
    "You are a helpful assistant.",
    "You are Cria.", "You are Cria, a baby llama. Answer in short sentences.",
    "You are Cria, a tiny model that runs on small boards. Be kind and brief.", "Answer briefly.",
    "You are a friendly baby llama called Cria.",
    "You are Cria, a small language model. Say so when you do not know something.",
    "You are a friendly chat assistant.", "Be brief.", "You are a small model. Be polite."]

OFFERS = ["Do you want to know more?", "Shall I tell you more?", "Would you like to hear more?"]
YES = ["yes[| please]", "yes, please", "sure", "of course", "yeah", "yep", "yes, tell me more", "ok", "please do",
       "go on", "gladly", "yes I do", "y", "why not"]
NO = ["no", "no[,|] thanks", "no, thank you", "not now", "nope", "nah", "no, that is enough", "n", "maybe later"]
NO_SAY = ["All right. Ask me something else if you like.", "All right! What else shall we talk about?"]
MORE = ["tell me more[| about it| about that]", "more", "go on", "more please", "and then?", "continue",
        "can you tell me more?", "what else?", "anything else?", "please go on", "tell me more please", "keep going",
        "explain more", "I want to know more", "say more", "give me more details"]
NO_MORE_SAY = ["That is all I know about it.", "I do not know more about it. I am very small."]
LOOSE_YES = ["yes", "sure", "ok yes", "yeah"]
LOOSE_YES_SAY = ["Good! What would you like to talk about?"]
LOOSE_MORE_SAY = ["More about what? You could ask me what Cria is."]
WHY = ["why?", "why is that?", "why so?", "how come?", "but why?", "why not?"]
WHY_SAY = ["I cannot say why. I only know a little.", "I do not know why. I am a very small model."]
WHY_UNKNOWN = ["why[| not]?", "why do you not know[| that| it]?", "why don't you know?", "you should know that",
               "try it", "please try", "are you sure?", "guess", "come on", "try again", "just guess", "that is easy",
               "you do not know that?", "really?"]
WHY_UNKNOWN_SAY = ["I was only taught to talk about Cria, llamas and a few simple things.",
                   "I am tiny, and it was not among the sentences I learned."]
ABOUT_YOU = ["and you?", "what about you?", "how about you?", "and yours?"]
ABOUT_YOU_SAY = {"name": "I am Cria, a baby llama.", "color": "I like the brown of llama wool.",
                 "food": "I eat only tokens.", "city": "I live in a small file on your machine.",
                 "job": "I am a chat model, and a small one.",
                 "age": "I am very young, still a baby llama.", "hobby": "I like humming and short stories.",
                 "pet": "I have no pets, only you to talk to."}
STORY_OPENING = ["", "", "", "Here is a short one. "]


class Dialogue:
    """A conversation in the making: its messages, and what has been said that later turns may refer to."""

    def __init__(self, rng):
        self.rng = rng
        self.messages = []
        self.facts = {}           # fact key -> (value, slots)
        self.more = None          # further sentences on the present subject; None when there is no subject
        self.story = None         # slots of the last story told
        self.declined = False     # whether the last answer said "I do not know"
        self.last_fact = None     # key of the fact told in the last exchange

    def chance(self, probability):
        return self.rng.random() < probability

    def exchange(self, question, answer, keep=(), slots=None):
        """Adds what the user says (typed carelessly, except the words in `keep`) and what the model answers."""
        self.messages.append(("user", as_typed(expand(question, self.rng, slots), self.rng, keep)))
        self.messages.append(("assistant", capitalize(expand(answer, self.rng, slots))))
        self.more, self.declined, self.last_fact = None, False, None

    def name(self):
        return self.facts["name"][0] if "name" in self.facts else None


def _subject(dialogue, ask, say, more, slots=None):
    """An answer about a subject that can be followed by more of it, sometimes offered."""
    rng = dialogue.rng
    more = [sentence for sentence in more if sentence]
    answer = expand(say, rng)
    if more and dialogue.chance(0.2):
        dialogue.exchange(ask, answer + " " + rng.choice(OFFERS), slots=slots)
        if dialogue.chance(0.7):
            dialogue.exchange(YES, more)
            dialogue.more = []
        elif dialogue.chance(0.8):
            dialogue.exchange(NO, NO_SAY)
    else:
        dialogue.exchange(ask, answer, slots=slots)
        dialogue.more = more


def about_cria_topic(dialogue):
    topic = dialogue.rng.choice(about_cria.TOPICS)
    _subject(dialogue, topic.ask, topic.say, topic.more)


def explain_word(dialogue):
    word = dialogue.rng.choice(words.WORDS)
    _subject(dialogue, words.ASK, word.say, word.more, {"term": dialogue.rng.choice(word.terms)})


def llama_fact(dialogue):
    ask, say = dialogue.rng.choice(words.LLAMA_FACTS)
    _subject(dialogue, ask, say, [])


def follow_up(dialogue):
    """A short remark whose meaning depends on the exchange before it."""
    if dialogue.declined:
        dialogue.exchange(WHY_UNKNOWN, WHY_UNKNOWN_SAY)
    elif dialogue.last_fact:
        dialogue.exchange(ABOUT_YOU, ABOUT_YOU_SAY[dialogue.last_fact])
    elif dialogue.more is None:
        if dialogue.chance(0.5):
            dialogue.exchange(LOOSE_YES, LOOSE_YES_SAY)
        else:
            dialogue.exchange(MORE, LOOSE_MORE_SAY)
    elif dialogue.chance(0.2):
        dialogue.exchange(WHY, WHY_SAY)
    elif dialogue.more:
        dialogue.exchange(MORE, dialogue.more)
        dialogue.more = []
    else:
        dialogue.exchange(MORE, NO_MORE_SAY)


def greeting(dialogue):
    if dialogue.name() and dialogue.chance(0.6):
        dialogue.exchange(small_talk.GREETINGS_AGAIN[0], small_talk.GREETINGS_BY_NAME, slots={"name": dialogue.name()})
    else:
        first = all(role == "system" for role, _ in dialogue.messages)
        dialogue.exchange(*(small_talk.GREETINGS if first else small_talk.GREETINGS_AGAIN))


def _polite(dialogue, pair, by_name):
    if dialogue.name():
        dialogue.exchange(pair[0], by_name, slots={"name": dialogue.name()})
    else:
        dialogue.exchange(*pair)


def thanks(dialogue):
    _polite(dialogue, small_talk.THANKS, small_talk.THANKS_BY_NAME)


def goodbye(dialogue):
    _polite(dialogue, small_talk.GOODBYES, small_talk.GOODBYES_BY_NAME)


def chat(dialogue):
    dialogue.exchange(*dialogue.rng.choice(small_talk.SMALL_TALK))
    if dialogue.messages[-1][1].endswith("Would you like that?"):
        if dialogue.chance(0.8):
            _tell_story(dialogue, YES, dialogue.rng.choice(stories.HEROES))
        else:
            dialogue.exchange(NO, NO_SAY)


def feeling(dialogue):
    dialogue.exchange(*dialogue.rng.choice(small_talk.FEELINGS))


def count(dialogue):
    last = dialogue.rng.randint(2, 10)
    numbers = small_talk.NUMBER_WORDS[:last]
    number = numbers[-1] if dialogue.chance(0.5) else str(last)
    dialogue.exchange(small_talk.COUNT, ", ".join(numbers) + ".", slots={"number": number})


def repeat(dialogue):
    rng = dialogue.rng
    if dialogue.chance(0.4):
        text = rng.choice(small_talk.REPEATABLE)
    else:
        text = " ".join(rng.choices(small_talk.REPEAT_WORDS, k=rng.randint(1, 6)))
    dialogue.exchange(small_talk.REPEAT, capitalize(text) + ".", keep=(text,), slots={"text": text})


def _fact_slots(fact, rng):
    if fact.key == "name":
        return {"value": memory.person_name(rng)}
    if fact.key == "pet":
        return {"value": memory.person_name(rng), "animal": rng.choice(memory.PET_ANIMALS)}
    value = rng.choice(fact.values)
    return {"value": value, "Value": capitalize(value)}


def tell_fact(dialogue):
    rng = dialogue.rng
    fact = memory.FACTS[0] if dialogue.chance(0.4) else rng.choice(memory.FACTS)
    slots = _fact_slots(fact, rng)
    ask, say = fact.tell, fact.reply
    if fact.key in dialogue.facts:
        if fact.key != "name":
            return
        slots["old"] = dialogue.name()
        ask, say = memory.CORRECT_NAME, memory.CORRECT_NAME_REPLY
    typed_carefully = slots["value"] not in memory.NAMES and fact.key in ("name", "pet") or dialogue.chance(0.7)
    dialogue.facts[fact.key] = (slots["value"], slots)
    dialogue.exchange(ask, say, keep=(slots["value"],) if typed_carefully else (), slots=slots)
    dialogue.last_fact = fact.key


def introduce(dialogue):
    """The user tells a name and one more thing in a single sentence."""
    rng = dialogue.rng
    name, other = memory.FACTS[0], rng.choice(memory.FACTS[1:])
    if name.key in dialogue.facts or other.key in dialogue.facts:
        return
    slots, other_slots = _fact_slots(name, rng), _fact_slots(other, rng)
    dialogue.facts[name.key] = (slots["value"], slots)
    dialogue.facts[other.key] = (other_slots["value"], other_slots)
    told = expand(other.tell, rng, other_slots)
    dialogue.exchange(memory.INTRODUCE, memory.INTRODUCE_REPLY, keep=(slots["value"], other_slots["value"]),
                      slots={**slots, "other": told})


def recall_fact(dialogue):
    rng = dialogue.rng
    known = [fact for fact in memory.FACTS if fact.key in dialogue.facts]
    if known and dialogue.chance(0.75):
        fact = rng.choice(known)
        dialogue.exchange(fact.ask, fact.recall, slots=dialogue.facts[fact.key][1])
        return
    fact = rng.choice(memory.FACTS)
    if fact.key in dialogue.facts:
        return
    dialogue.exchange(fact.ask, fact.unknown, slots=_fact_slots(fact, rng))
    if fact.key == "name" and dialogue.chance(0.6):
        slots = _fact_slots(fact, rng)
        dialogue.facts["name"] = (slots["value"], slots)
        dialogue.exchange(memory.ANSWER_NAME, fact.reply, keep=(slots["value"],), slots=slots)
        dialogue.last_fact = "name"


def recall_everything(dialogue):
    known = [expand(fact.summary, dialogue.rng,
                    dialogue.facts[fact.key][1]) for fact in memory.FACTS if fact.key in dialogue.facts]
    if not known:
        dialogue.exchange(memory.ASK_SUMMARY, memory.SUMMARY_UNKNOWN)
    elif len(known) <= 3:
        dialogue.exchange(memory.ASK_SUMMARY, "I know that " + " and ".join(known) + ".")


def ask_other_fact(dialogue):
    dialogue.exchange(memory.OTHER_FACTS_ASK, memory.OTHER_FACTS_SAY)


def _tell_story(dialogue, ask, hero, keep=()):
    rng = dialogue.rng
    trouble, helps, endings = rng.choice(stories.TROUBLES)
    helper = rng.choice(stories.HELPERS)
    slots = {"hero": hero, "helper": helper, "Helper": capitalize(helper), "time": rng.choice(stories.TIMES)}
    sentences = [rng.choice(stories.OPENINGS), trouble, rng.choice(helps), rng.choice(endings)]
    text = " ".join(capitalize(expand(sentence, rng, slots)) for sentence in sentences)
    dialogue.exchange(ask, rng.choice(STORY_OPENING) + text + rng.choice(stories.CLOSINGS), keep=keep, slots=slots)
    dialogue.story = slots


def story(dialogue):
    rng = dialogue.rng
    if dialogue.chance(0.25):
        hero = rng.choice(stories.HEROES) if dialogue.chance(0.3) else memory.person_name(rng)
        _tell_story(dialogue, stories.ASK_ABOUT, hero, keep=(hero,))
    else:
        _tell_story(dialogue, stories.ASK, rng.choice(stories.HEROES))
    for _ in range(2):
        kind = rng.random()
        if kind < 0.2:
            dialogue.exchange(stories.ABOUT_HERO, stories.ABOUT_HERO_SAY, slots=dialogue.story)
        elif kind < 0.35:
            dialogue.exchange(stories.ABOUT_HELPER, stories.ABOUT_HELPER_SAY, slots=dialogue.story)
        elif kind < 0.45:
            dialogue.exchange(stories.PRAISE, stories.PRAISE_SAY, slots=dialogue.story)
        elif kind < 0.55:
            _tell_story(dialogue, stories.ASK_ANOTHER, rng.choice(stories.HEROES))
        else:
            return


def _nonsense_word(rng):
    return memory.invented_name(rng).lower() + rng.choice(["", "le", "ing", "ish", "", "um"])


def _unknown_slots(rng):
    country, city = rng.choice(unknown.COUNTRIES), rng.choice(unknown.CITIES)
    person = memory.person_name(rng) + " " + memory.invented_name(rng)
    slots = {
        "country": country, "city": city, "place": rng.choice([country, city, memory.invented_name(rng)]),
        "person": person, "tool": rng.choice(unknown.TOOLS),
        "thing": rng.choice(unknown.THINGS), "thing2": rng.choice(unknown.THINGS),
        "thing3": rng.choice(unknown.PLURALS), "plural": rng.choice(unknown.PLURALS), "verb": rng.choice(unknown.VERBS),
        "year": rng.choice(unknown.YEARS), "nonsense": _nonsense_word(rng), "nonsense_name": memory.invented_name(rng),
        "writing": rng.choice(unknown.WRITINGS), "program": rng.choice(unknown.PROGRAMS),
        "language": rng.choice(unknown.FOREIGN_LANGUAGES), "plain": rng.choice(unknown.PLAIN_WORDS),
        "a": str(rng.randint(0, rng.choice([9, 99, 999]))), "b": str(rng.randint(1, 99)),
    }
    slots["task"] = expand(rng.choice(unknown.TASKS), rng, slots)
    slots["who"] = expand(unknown.PERSONS, rng, slots)
    slots["subject"] = expand(unknown.SUBJECTS, rng, slots)
    return slots


def unknown_knowledge(dialogue):
    rng = dialogue.rng
    slots = _unknown_slots(rng)
    ask = rng.choice(unknown.KNOWLEDGE_ASK)
    nameable = ("thing", "country", "city", "plural", "nonsense_name", "person")
    mentioned = [slots[slot] for slot in nameable if "{" + slot + "}" in ask]
    say = unknown.KNOWLEDGE_SAY
    keep = ()
    if len(mentioned) == 1 and dialogue.chance(0.25):
        slots["about"] = mentioned[0]
        say, keep = unknown.KNOWLEDGE_SAY_ABOUT, (mentioned[0],)
    dialogue.exchange(ask, say, keep=keep, slots=slots)
    dialogue.declined = True


def unknown_other(dialogue):
    """Sums, the present moment, actions, long texts, and the few things it will not do."""
    kinds = [(unknown.SUMS_ASK, unknown.SUMS_SAY), (unknown.NOW_ASK, unknown.NOW_SAY),
             (unknown.ACTIONS_ASK, unknown.ACTIONS_SAY), (unknown.WRITING_ASK, unknown.WRITING_SAY),
             (unknown.HARMFUL_ASK, unknown.HARMFUL_SAY), (unknown.HELP_NEEDED_ASK, unknown.HELP_NEEDED_SAY),
             (unknown.FOREIGN_ASK, unknown.FOREIGN_SAY)]
    ask, say = dialogue.rng.choices(kinds, weights=[5, 4, 5, 5, 1, 0.5, 2])[0]
    dialogue.exchange(ask, say, slots=_unknown_slots(dialogue.rng))


def nonsense(dialogue):
    rng = dialogue.rng
    text = " ".join(_nonsense_word(rng) for _ in range(rng.randint(1, 4)))
    if dialogue.chance(0.4):
        text = "".join(rng.choices("asdfghjklqwertyuiopzxcvbnm", k=rng.randint(2, 9)))
    dialogue.exchange(text, unknown.NONSENSE_SAY)


EXCHANGES = {
    about_cria_topic: 12, explain_word: 9, llama_fact: 2.5, follow_up: 5, chat: 9, feeling: 2.5, thanks: 1.5,
    greeting: 1, goodbye: 0.3, count: 0.7, repeat: 5,
    tell_fact: 9, introduce: 2, recall_fact: 11, recall_everything: 1, ask_other_fact: 0.7, story: 3.5,
    unknown_knowledge: 10, unknown_other: 5, nonsense: 1,
}


def conversation(rng):
    """Returns one conversation: a list of (role, content)."""
    dialogue = Dialogue(rng)
    if dialogue.chance(0.35):
        dialogue.messages.append(("system", rng.choice(SYSTEM_PROMPTS)))
    if dialogue.chance(0.3):
        greeting(dialogue)
    turns = rng.randint(7, 14) if dialogue.chance(0.06) else rng.choice([1, 1, 2, 2, 3, 4, 5, 6])
    kinds, weights = zip(*EXCHANGES.items())
    for _ in range(turns):
        rng.choices(kinds, weights)[0](dialogue)
    if dialogue.chance(0.15):
        goodbye(dialogue)
    return dialogue.messages


def conversations(seed, count):
    """Yields `count` conversations; the same seed gives the same ones."""
    rng = random.Random(seed)
    while count:
        messages = conversation(rng)
        if any(role == "assistant" for role, _ in messages):
            count -= 1
            yield messages
