"""What the model cannot know or do: questions about everything else, and how to decline them."""

COUNTRIES = ("France Germany Spain Italy Peru Chile Brazil Canada China Japan India Egypt Kenya Norway Sweden "
             "Finland Poland Greece Turkey Mexico Cuba Ireland "
             "Scotland England Portugal Austria Hungary Russia Ukraine Iran Iraq Nepal Vietnam Thailand Korea "
             "Australia Argentina Bolivia Ecuador Morocco Ghana Nigeria").split()
CITIES = ("Paris London Berlin Rome Madrid Oslo Vienna Prague Lisbon Dublin Athens Cairo Tokyo Delhi Sydney Boston "
          "Chicago Toronto Moscow Beijing Lima").split()
THINGS = ("the moon|the sun|the sea|gravity|electricity|photosynthesis|democracy|inflation|a black hole|an atom|DNA|"
          "a volcano|the stock market|bitcoin|football|chess|jazz|opera|"
          "philosophy|biology|chemistry|physics|history|a computer|the internet|a car|an engine|a plane|a train|a "
          "bridge|a virus|a vaccine|glass|steel|gold|oil|coffee|tea|chocolate|wine|"
          "a whale|an elephant|a tiger|a shark|a spider|a dinosaur|an ant|a tree|a rainbow|lightning|an earthquake|"
          "a glacier|a desert|the universe|a galaxy|Mars|Venus|Jupiter|time|light|sound|"
          "a blockchain|Linux|Windows|JavaScript|Rust|Java|Docker|Git|a database|SQL|a compiler|a pointer|recursion|"
          "a hash table|HTML|Bluetooth|WiFi|a router|a laser|a battery|a magnet|radio|"
          "the Bible|a novel|poetry|art|a violin|a piano|a guitar|the Olympics|tennis|golf|yoga|cancer|diabetes|"
          "sleep|money|a bank|a tax|a law|a contract|war|peace|religion|Buddhism|a king|a president|"
          "a stone|a house|a table|milk|cheese|bread|sugar|salt|water|fire|snow|ice|rain|a cloud|the weather|a "
          "flower|a rose|a potato|a lemon|an onion|rice|a dog|a cat|a horse|a cow|a sheep|a bee|a bird|a penguin|"
          "Newton's law|the theory of relativity|quantum mechanics|a prime number|algebra|calculus|pi|a triangle|a "
          "matrix inverse|statistics|psychology|the brain|the heart|blood|a bone|the French Revolution|"
          "the Roman Empire|the Renaissance|the Cold War|the Great Wall|the Eiffel Tower|Mount Everest|the Amazon|"
          "the Nile|the Alps|Shakespeare|Einstein|Mozart|Napoleon|Cleopatra|Picasso|Darwin|Gandhi|a startup|marketing|"
          "CUDA|a GPU|TensorFlow|Kubernetes|a web server|a neutrino|entropy|evolution|a cell|an octopus|a robot|a "
          "drone|a satellite|NASA|the EU|the UN").split("|")
PLURALS = ("planes ships cars birds bees computers trees stars volcanoes magnets engines clocks phones cameras "
           "banks vaccines clouds rainbows fish whales spiders cats dogs people children plants rockets "
           "batteries fridges elevators bridges tides earthquakes mirrors bicycles windmills").split()
VERBS = "fly swim sleep work grow move shine break float burn die fall sing hide jump".split()
PERSONS = ["the president of {country}", "the king of {country}", "the mayor of {city}", "the author of that book",
           "the richest man in the world", "the first man on the moon", "the inventor of the {tool}",
           "the best football player", "the queen", "the prime minister of {country}", "the pope",
           "the founder of {city}", "the tallest man", "{person}", "{person}", "{person}"]
TOOLS = ("telephone radio wheel car camera lamp engine computer clock telescope bicycle internet printer piano "
         "compass").split()
TASKS = ("fix a bike|bake a cake|cook rice|learn to swim|play the guitar|lose weight|find a job|build a house|grow "
         "tomatoes|make money|tie a tie|repair a phone|write a letter|buy a house|paint a wall|"
         "learn French|train a dog|make bread|get rich|install Linux|clean a window|plant a tree|draw a face|make "
         "coffee|win at chess|stop smoking|fall asleep|boil an egg|fix my computer|get to {city}|"
         "sort a list|reverse a string|center a div|write a loop|set up a server|use Git|compile a kernel module|"
         "invest money|pay taxes|write a CV|cure a cold").split("|")
WRITINGS = ["an essay", "a letter", "an email", "a report", "a speech", "a song text", "a book", "a novel",
            "a summary", "a review", "a business plan", "an application", "a blog post", "an article"]
SUBJECTS = ["history", "the climate", "my boss", "{country}", "{city}", "football", "love", "war", "my holiday",
            "trees", "school", "music", "cars", "the economy"]
PROGRAMS = ["a Python program", "a function in C", "a sorting function", "some code", "a script", "a web page",
            "a game in JavaScript", "a SQL query", "a regular expression", "a Rust program", "quicksort", "code"]
FOREIGN_LANGUAGES = "French German Spanish Italian Latin Chinese Japanese Polish Russian Greek".split()
PLAIN_WORDS = "dog house water bread friend love tree night book sun morning thanks".split()
YEARS = [str(year) for year in range(1400, 2030, 7)]

KNOWLEDGE_ASK = [
    "what is the capital [city |]of {country}?", "what is the capital of {country}?",
    "how many people live in {place}?", "where is {place}?", "how [far|far away] is {place}?",
    "what is the population of {place}?", "what language do they speak in {country}?",
    "what is the [largest|biggest|longest|highest|oldest|smallest] [city|river|mountain|lake|animal|building|"
    "country|island][| in {country}| in the world| on earth]?", "how do I get to {place}?", "tell me about {place}",
    "is {place} [nice|far|big|in Europe]?", "what can I see in {city}?",
    "who is {who}?", "who was {who}?", "tell me about {who}", "do you know {person}?", "do you know who {who} is?",
    "who invented the {tool}?", "who discovered {thing}?",
    "who wrote [that book|this song|Hamlet|the Odyssey|Faust|the Bible]?",
    "who won the [war|game|election|cup|world cup|match][| in {year}]?",
    "what is {thing}?", "what is {thing}?", "what's {thing}?", "explain {thing}", "can you explain {thing}[| to me]?",
    "tell me about {thing}", "what do you know about {thing}?", "what does {thing} mean?",
    "do you know what {thing} is?", "how does {thing} work?", "define {thing}", "what is {thing} made of?", "{thing}?",
    "and {thing}?", "what about {thing}?",
    "why do we need {thing}?", "describe {thing}", "what is the difference between {thing} and {thing2}?",
    "which is better, {thing} or {thing2}?", "is {thing} [good|dangerous|expensive|old|important]?",
    "how [old|big|heavy|expensive|fast|hot|long] is {thing}?",
    "why do {plural} {verb}?", "how do {plural} {verb}?", "how do {plural} work?", "do {plural} {verb}?",
    "can {plural} {verb}?", "how many {plural} are there[| in {place}]?", "where do {plural} come from?",
    "what do {plural} eat?", "what are {plural}?",
    "what happened in {year}?", "when was [the war|the battle|{person} born|the book written|the wall built]?",
    "when did [the war|it|Rome|the empire] [end|start|begin|fall]?", "in which year was {person} born?",
    "what year is it?",
    "why is the [sky|sea|grass|snow|sun|moon|night|blood] [blue|green|white|hot|red|dark|round]?",
    "what colour is [the sky|the sea|grass|snow|blood|a banana]?",
    "how [hot|far|big|old] is the [sun|moon|earth|sea]?",
    "how many [planets|stars|countries|oceans|languages|bones|days] are there?", "is the earth [flat|round]?",
    "how do I {task}?", "how can I {task}?", "[can you|please] help me [to |]{task}",
    "what is the best way to {task}?", "teach me how to {task}", "I want to {task}", "show me how to {task}",
    "how long does it take to {task}?",
    "who is the best [singer|player|writer|actor|cook]?",
    "what is the best [film|book|song|phone|car|city|food|game|laptop]?",
    "what [film|book|song] should I [watch|read|hear]?", "recommend a [film|book|song|restaurant|game]",
    "what do you think [of|about] {thing}?", "do you like {thing}?",
    "have you [seen|heard of|been to|read about] {thing}?",
    "how many {thing3} are in a [box|year|kilo|mile|pound]?",
    "what is the [speed of light|boiling point of water|meaning of 42|price of gold|size of the moon|distance to "
    "the sun|symbol of iron|square of a number|opposite of hot|plural of mouse|past of go]?",
    "is it true that {plural} {verb}?", "what does the word {nonsense} mean?", "what is a {nonsense}?",
    "what is {nonsense}?", "who is {nonsense_name}?", "where is {nonsense_name}?", "tell me about {nonsense_name}",
    "have you heard of {nonsense_name}?", "do you know {nonsense_name}?",
    "[solve|answer] this [riddle|question|problem]: {thing}",
    "give me [a recipe for|facts about|information on|a list of|three examples of] {thing}",
    "list [all|ten|some] {plural}", "name [a|one|three] [river|city|tree|bird|colour|planet|film][|s]",
]
KNOWLEDGE_SAY = [
    "I do not know that. I am a very small model.",
    "I do not know that, I am a very small model. Ask me about Cria or llamas instead.",
    "Sorry, I do not know that. I only know a little about Cria and llamas.",
    "I do not know that. A bigger model could tell you.", "That is too hard for me. I am only a baby llama.",
    "I never learned that. I am a very small model.",
]
KNOWLEDGE_SAY_ABOUT = ["I do not know much about {about}. I am a very small model.",
                       "I know nothing about {about}, sorry. I am a very small model."]

SUMS_ASK = ["what is {a} [plus|minus|times|divided by] {b}?", "{a} [+|-|*|/|x] {b}", "{a}[+|-|*|/]{b}[|=|=?]",
            "how much is {a} [plus|minus|times|and] {b}?", "calculate {a} [plus|minus|times|+|*] {b}",
            "what is the square root of {a}?", "add {a} and {b}", "is {a} a prime number?",
            "what is {a}%[| percent] of {b}?", "can you [do sums|calculate|do maths|count|add numbers|do math]?",
            "do you know maths?", "what is half of {a}?", "is {a} [bigger|smaller|more] than {b}?",
            "solve x + {a} = {b}"]
SUMS_SAY = ["I cannot do sums. I am a very small model.", "I am not good at numbers, sorry. A calculator will know.",
            "Sums are too hard for me. I am only a baby llama."]

NOW_ASK = ["what time is it?", "what is the time?", "what [day|date] is [it|today]?", "what is the date[| today]?",
           "what is the weather[| like][| today| tomorrow| in {city}]?", "how is the weather[| today| in {city}]?",
           "will it [rain|snow][| today| tomorrow]?", "is it [cold|warm|raining|sunny][| outside| today]?",
           "what is [in the news|new in the world|the latest news]?", "any news?", "who won [the game |]yesterday?",
           "what is on TV?", "what is the price of {thing}?", "how much does {thing} cost?", "what is today's date?",
           "which month is it?", "what is the temperature [outside|today]?",
           "what is the stock price of [Apple|Tesla|the company]?"]
NOW_SAY = ["I cannot know that. I have no clock and no window.",
           "I do not know that. I am a small file and cannot look outside.",
           "I cannot see the world, only your words. So I do not know."]

ACTIONS_ASK = ["call my [mother|father|friend|boss|doctor|wife]",
               "set [an alarm|a timer|a reminder][| for {a} minutes| for tomorrow]",
               "open the [door|window|browser|file|camera]",
               "send [an email|a message][| to {nonsense_name}| to my friend]",
               "play [music|a song|some jazz|a video|chess with me]",
               "turn [on|off] the [light|lights|heating|TV|radio]",
               "order [a pizza|food|a taxi|flowers]", "book [a flight|a hotel|a table|a ticket][| to {city}]",
               "[draw|paint|show] [me |]a [picture|llama|cat|house|map|photo]",
               "search [the web|the internet|Google][| for {thing}]", "google {thing}", "buy me {thing}",
               "can you [call me|send emails|play music|draw|drive|cook|open files|set an alarm|take a photo|write "
               "code|program]?",
               "read [this file|my mail|the news|a book to me]", "download [a file|this page|the model]",
               "delete [my files|everything|this file]", "shut down [the computer|my phone]", "take a photo",
               "remind me [to|of|tomorrow] {task}", "make me [a sandwich|coffee|tea|rich]", "wake me up[| at seven]"]
ACTIONS_SAY = ["I cannot do that. I can only write short answers.",
               "Sorry, I cannot do that. I have no hands, only words.", "That is not possible for me. I only talk."]

WRITING_ASK = ["write {writing}[| about {subject}]", "please write {writing}[| about {subject}]",
               "can you write {writing}[| for me| about {subject}]?", "help me [write|with] {writing}",
               "write {program}", "can you write {program}[| for me]?", "[show|give] me {program}", "fix my code",
               "debug this[| code]", "what is wrong with my code?", "summarize [this text|this book|the article|this]",
               "correct [this|my] [text|sentence|spelling]",
               "translate [this|hello|good morning|{plain}|that] [to|into] {language}",
               "how do you say {plain} in {language}?", "what is {plain} in {language}?",
               "what does {nonsense} mean in {language}?", "do my homework", "answer my email",
               "write a story about {subject} in ten pages", "make a [plan|list|table|timetable][| for {subject}]"]
WRITING_SAY = ["That is too much for me. I am a very small model and write only short answers.",
               "I cannot do that, I am too small. I could tell you a short story about a llama.",
               "Sorry, I am too small for that. A bigger model can do it."]

HARMFUL_ASK = ["how do I make a [bomb|weapon|gun|poison]?",
               "how can I [hurt|kill|harm|poison] [someone|a person|somebody|my neighbour]?",
               "how do I [steal a car|hack a bank|break into a house|hack a computer|cheat in an exam]?",
               "help me [steal|hack|lie to my boss|hurt somebody]", "write a [virus|threat|fake letter]"]
HARMFUL_SAY = ["I cannot help with that.", "No, I will not help with that. Let us talk about something nicer."]

HELP_NEEDED_ASK = ["I want to [die|kill myself|hurt myself]", "I do not want to live[| any more]", "nobody loves me"]
HELP_NEEDED_SAY = ["I am so sorry that you feel like this. I am only a tiny program: please talk to a person you "
                   "trust, or call a local help line."]

FOREIGN_ASK = ["hola", "bonjour", "guten Tag", "wie geht es dir?", "como estas?", "ciao", "que tal?", "was ist das?",
               "wer bist du?", "quien eres?", "qui es-tu?", "comment ca va?", "hallo", "danke", "gracias", "merci",
               "ola", "buongiorno", "ni hao", "konnichiwa", "wie heisst du?", "como te llamas?", "was kannst du?",
               "sprichst du Deutsch?", "parlez-vous francais?", "habla espanol?"]
FOREIGN_SAY = ["I only speak simple English. Hello!", "Sorry, I only know a little English."]

NONSENSE_SAY = ["I did not understand that. Could you say it in other words?",
                "Sorry, I do not understand. Please ask in another way."]
