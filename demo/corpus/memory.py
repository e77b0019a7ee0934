"""Facts that a user tells about themselves and asks for later in the same conversation."""

from collections import namedtuple

Fact = namedtuple("Fact", "key values tell reply ask recall unknown summary")

NAMES = ("Ann Anna Ben Bob Carl Clara Dan David Ella Emma Eva Finn Frank George Grace Hans Helen Ida Ivan Jack "
         "James Jane John Julia Kate Karl Lena Leo Lisa "
         "Lucy Maria Mark Mary Max Mia Mike Nina Noah Nora Olga Oliver Omar Otto Paul Peter Petra Pia Rosa Ruth Sam "
         "Sara Simon Sofia Susan Theo Tim Tina Tom "
         "Vera Victor Will Zoe Ali Aisha Ahmed Amir Bao Chen Diego Elif Fatima Hana Hiro Igor Ines Jin Jose Juan "
         "Kai Kemal Lara Li Luis Mei Mina Miguel Nadia "
         "Pablo Priya Raj Ravi Rita Sana Sven Tariq Uma Wei Yara Yuki Yusuf Zara Alex Chris Robin Kim Sasha Alice "
         "Martin Laura Daniel Sarah Thomas Michael "
         "Linda Robert Jonas Felix Hugo Oscar Emil Greta Freya Astrid Lars Nils Erik Ingrid Marco Luca Paolo Giulia "
         "Chiara Pierre Claire Marie Louis").split()

_SYLLABLES = ("ba be bo da de do du fa fi ga go ha he jo ka ke ki ko la le li lo lu ma me mi mo na ne ni no pa pe "
              "ra re ri ro sa se si ta te ti to va vi wa ya yo za ze zo").split()
_ENDINGS = ["", "n", "r", "s", "l", "m", "x", "k", "th", "nd"]


def invented_name(rng):
    """Returns a name that is in no table, so that the model learns to copy and not to guess."""
    return ("".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(1, 3))) + rng.choice(_ENDINGS)).capitalize()


def person_name(rng):
    return rng.choice(NAMES) if rng.random() < 0.65 else invented_name(rng)


FACTS = [
    Fact("name", None,
         ["my name is {value}", "I am {value}", "I am called {value}", "call me {value}", "you can call me {value}",
          "[hi|hello|hey], I am {value}", "[hi|hello|hey], my name is {value}", "this is {value}", "my name's {value}",
          "people call me {value}", "{value} is my name", "[hello|hi] Cria, I am {value}", "please call me {value}",
          "it is {value} here"],
         ["Nice to meet you, {value}!", "Hello, {value}! Nice to meet you. I am Cria.",
          "Hello, {value}! I will remember your name while we talk.",
          "Nice to meet you, {value}! What would you like to talk about?"],
         ["what is my name?", "do you [know|remember] my name?", "who am I?", "what am I called?",
          "can you tell me my name?", "do you remember who I am?", "say my name", "what was my name[| again]?",
          "how am I called?", "did I tell you my name?", "you know my name?"],
         ["Your name is {value}.", "You are {value}.", "Your name is {value}. You told me before."],
         ["You have not told me your name yet. What is it?", "I do not know your name yet. What is it?"],
         "your name is {value}"),
    Fact("color",
         ("red blue green yellow white black purple orange pink brown grey violet silver gold turquoise").split(),
         ["my favourite [colour|color] is {value}", "I like the [colour|color] {value}[| best| most]",
          "{value} is my favourite [colour|color]", "my favorite color is {value}",
          "the [colour|color] I like best is {value}"],
         ["{Value} is a nice colour.", "{Value}! I will remember that.", "How nice! {Value} is a good colour."],
         ["what is my favourite [colour|color]?", "[which|what] [colour|color] do I like[| best]?",
          "do you [know|remember] my favourite [colour|color]?", "what was my favourite [colour|color][| again]?",
          "what is my favorite color?"],
         ["Your favourite colour is {value}.", "You like {value} best."],
         ["You have not told me your favourite colour yet.", "I do not know that yet. Which colour do you like?"],
         "your favourite colour is {value}"),
    Fact("food",
         ("pizza soup bread rice pasta cheese cake fish salad apples chocolate potatoes noodles curry bananas "
          "pancakes eggs honey sushi beans tacos carrots cherries").split(),
         ["my favourite [food|meal|dish] is {value}", "I like to eat {value}", "I love {value}",
          "I like {value}[| most]", "the food I like best is {value}", "my favorite food is {value}"],
         ["{Value}! That sounds good.", "I have never had {value}, but it sounds nice.",
          "{Value}! I will remember that."],
         ["what is my favourite [food|meal|dish]?", "what do I like to eat?", "[which|what] food do I like[| best]?",
          "do you [know|remember] what I like to eat?", "what is my favorite food?", "what food do I love?"],
         ["You like {value}.", "Your favourite food is {value}."],
         ["You have not told me what you like to eat yet.", "I do not know that yet. What do you like to eat?"],
         "you like {value}"),
    Fact("city",
         ("Lima Cusco Paris London Berlin Rome Madrid Oslo Vienna Prague Lisbon Dublin Athens Cairo Tokyo Delhi "
          "Sydney Boston Chicago Toronto Bern Warsaw Helsinki "
                  "Stockholm Quito Bogota Nairobi Seoul Hamburg Leipzig Turin Porto Lyon Leeds York Peru Spain "
                  "Germany France Italy Canada India Japan Brazil Poland").split(),
         ["I live in {value}", "I am from {value}", "I come from {value}", "my [home|city|town] is {value}",
          "I am living in {value}", "{value} is my home"],
         ["{Value}! I have never been there, I am always in my file.", "I will remember that you live in {value}.",
          "{Value} must be a nice place."],
         ["where do I live?", "do you [know|remember] where I live?", "where am I from?", "where is my home?",
          "which [city|place] do I live in?", "where did I say I live?"],
         ["You live in {value}.", "You told me that you live in {value}."],
         ["You have not told me where you live yet.", "I do not know that. Where do you live?"],
         "you live in {value}"),
    Fact("pet", None,
         ["I have a {animal} [called|named] {value}", "my {animal} is [called|named] {value}",
          "my {animal}'s name is {value}", "the name of my {animal} is {value}",
          "I have a {animal}, its name is {value}", "this is my {animal} {value}"],
         ["{value} is a good name for a {animal}!", "Say hello to {value} from me!",
          "A {animal}! I will remember {value}."],
         ["what is my {animal} called?", "what is the name of my {animal}?",
          "do you [know|remember] my {animal}'s name?", "how is my {animal} called?", "what is my {animal}'s name?"],
         ["Your {animal} is called {value}.", "The name of your {animal} is {value}."],
         ["You have not told me the name of your {animal} yet.",
          "I do not know that yet. What is your {animal} called?"],
         "your {animal} is called {value}"),
    Fact("job",
         ("teacher doctor cook nurse farmer student driver baker painter writer engineer gardener programmer pilot "
          "singer builder scientist shepherd carpenter lawyer").split(),
         ["I am a {value}", "I work as a {value}", "my job is {value}", "I am a {value} [by trade|at the moment]"],
         ["A {value}! That sounds interesting.", "A {value}! I will remember that.",
          "How nice, a {value}! I am only a baby llama."],
         ["what is my job?", "what do I do[| for work| for a living]?", "what do I work as?",
          "do you [know|remember] my job?", "what was my job?"],
         ["You are a {value}.", "You told me that you are a {value}."],
         ["You have not told me your job yet.", "I do not know that yet. What do you do?"],
         "you are a {value}"),
    Fact("age", [str(age) for age in range(5, 90)],
         ["I am {value} years old", "my age is {value}", "I am {value}", "I turned {value} [today|this year]"],
         ["{value} years! That is much older than I am.", "{value}! I will remember that."],
         ["how old am I?", "what is my age?", "do you [know|remember] how old I am?", "do you know my age?"],
         ["You are {value} years old.", "You told me that you are {value}."],
         ["You have not told me your age yet.", "I do not know that. How old are you?"],
         "you are {value} years old"),
    Fact("hobby",
         ("reading swimming running dancing painting cooking fishing hiking singing chess football music gardening "
          "climbing drawing cycling knitting skating sailing").split(),
         ["my hobby is {value}", "I like {value} in my free time", "I enjoy {value}", "in my free time I like {value}",
          "my favourite hobby is {value}"],
         ["{Value} sounds like fun!", "{Value}! I will remember that.", "I cannot try {value}, but it sounds nice."],
         ["what is my hobby?", "what do I [like to do|do in my free time]?", "do you [know|remember] my hobby?",
          "what do I enjoy?"],
         ["Your hobby is {value}.", "You like {value}."],
         ["You have not told me your hobby yet.", "I do not know that yet. What do you like to do?"],
         "your hobby is {value}"),
]

PET_ANIMALS = "dog cat horse bird fish rabbit mouse llama parrot hamster goat pony duck turtle".split()

INTRODUCE = ["[hi|hello|hey], I am {value} and {other}", "my name is {value} and {other}", "I am {value}, {other}",
             "[hi|hello], my name is {value}, {other}", "I am {value} and {other}"]
INTRODUCE_REPLY = ["Nice to meet you, {value}! I will remember that.",
                   "Hello, {value}! I will remember what you told me."]

CORRECT_NAME = ["no, my name is {value}", "[actually|sorry], my name is {value}", "that is wrong, I am {value}",
                "I changed my name, I am {value} now", "[actually|no], I am called {value}",
                "not {old}, my name is {value}"]
CORRECT_NAME_REPLY = ["I am sorry. Hello, {value}!", "All right, {value}! I will remember that."]
ANSWER_NAME = ["{value}", "it is {value}", "my name is {value}", "I am {value}", "{value}, nice to meet you"]

ASK_SUMMARY = ["what do you know about me?", "what did I tell you?",
               "do you remember [what I told you|what I said|anything about me]?", "tell me what you know about me",
               "what do you remember[| about me]?"]
SUMMARY_UNKNOWN = ["I know nothing about you yet. What is your name?", "You have not told me anything about you yet."]

OTHER_FACTS_ASK = ["[what is|do you know] my [birthday|address|phone number|password|last name|favourite film|"
                   "mother's name|wife's name|husband's name|favourite number|shoe size|star sign|bank account|"
                   "favourite song|brother's name|email|height]?",
                   "where [are my keys|is my phone|did I park|is my wife|are my glasses|did I put my book]?",
                   "what did I [eat|do|say|buy|dream] yesterday?", "what am I thinking[| of]?",
                   "what [is in my pocket|am I wearing|am I doing|is behind me]?"]
OTHER_FACTS_SAY = ["I do not know that. You have not told me.", "You have not told me that, so I cannot know."]
