"""Short stories about a cria, put together from beginnings, troubles, helpers and endings."""

ASK = ["tell me a [short |little |small |]story[| please]",
       "tell me a [short |]story about a [llama|cria|baby llama|small llama]",
       "[can|could] you tell me a [story|bedtime story|tale]?", "do you know a story?", "a story[| please]",
       "I [want|would like] [to hear |]a story", "write [me |]a [short |]story[| about a llama]", "story time",
       "please tell [me |us |]a story[| about a llama]", "make up a story",
       "tell a story[| about llamas| about a cria]", "a story about a [llama|cria]", "give me a story",
       "tell me something about a little llama", "let me hear a story"]
ASK_ABOUT = ["tell me a [short |]story about {hero}",
             "[can|could] you tell me a story about [a llama called |a cria called |a llama named |]{hero}?",
             "a story about {hero}[| please]", "write a story about [a llama called |]{hero}"]
ASK_ANOTHER = ["another [one|story][| please]", "[tell me|one] more story", "tell me another [one|story]", "again",
               "one more[| please]", "more stories", "do you know another story?"]

HEROES = ("Pip Luma Nilo Tula Momo Inti Killa Wari Suri Paco Lila Tika Chaski Rumi Misti Nina Yuma Pepa Tito Bruno "
          "Flora Otto Juno Kiwi Bibi").split()

OPENINGS = ["Once there was a small cria called {hero}.", "High in the mountains lived a baby llama called {hero}.",
            "There was a young llama, and its name was {hero}.", "A little cria called {hero} lived on a green hill."]
TROUBLES = [
    ("One {time} {hero} could not find the way home.", ["{helper} showed the way along the river.",
        "{helper} walked ahead and left little marks in the sand.",
        "Then {hero} hummed, and {helper} heard it and came."],
        ["Before night {hero} was home, and mother hummed a song.",
         "At home there was warm milk, and {hero} slept well."]),
    ("One {time} {hero} wanted to cross a river, but the water was deep.", ["{helper} knew a bridge behind the trees.",
        "{helper} put flat stones into the water, one by one."], ["On the other side the grass was sweet.",
            "{hero} crossed the river and danced for joy."]),
    ("One {time} {hero} was afraid of the dark.", ["{helper} said that the stars are small lamps.",
        "{helper} stayed and told a funny tale."], ["Since then {hero} counts the stars and falls asleep.",
            "Soon {hero} was not afraid any more."]),
    ("One {time} {hero} had a bag that was too heavy.", ["{helper} said: take only what you need.",
        "{helper} packed the bag again, small things first."], ["Now the bag was light, and {hero} ran up the hill.",
            "From then on {hero} planned before every walk."]),
    ("One {time} {hero} wanted to be big and strong at once.", ["{helper} said that small feet find the narrow paths.",
        "{helper} said that small ones start quickly."], ["{hero} was the first on the top of the hill.",
            "Since then {hero} was glad to be small."]),
    ("One {time} {hero} forgot the song of the herd.", ["{helper} hummed the first note.",
        "{helper} said: listen to the wind."], ["Then {hero} knew all of it again, and the herd sang along.",
            "In the evening the whole herd hummed together."]),
    ("One {time} it snowed, and {hero} was cold.", ["{helper} shared a warm place under a rock.",
        "{helper} brought dry hay."], ["They kept each other warm until morning.",
                                       "In the morning the sun came, and the snow was gone."]),
    ("One {time} {hero} found a shiny bell in the grass.", ["{helper} was looking for it everywhere.",
        "{helper} had lost it the day before."], ["{hero} gave it back and won a friend.",
            "They rang the bell together, and all the hills heard it."]),
]
HELPERS = ["an old llama", "a kind bird", "a little mouse", "a grey fox", "a shepherd", "a wise owl", "a slow turtle",
           "a friendly dog"]
TIMES = ["day", "morning", "evening", "spring day"]
CLOSINGS = ["", "", " The end.", " And that is the end."]

ABOUT_HERO = ["what was the name of the [cria|llama|baby llama]?", "what was the [llama|cria] called?",
              "who was the story about?", "what is the [llama|cria]'s name?", "what was its name?",
              "how was the llama called?", "who was in the story?"]
ABOUT_HERO_SAY = ["The cria in the story is called {hero}.", "Its name is {hero}."]
ABOUT_HELPER = ["who helped {hero}?", "who helped the [cria|llama]?", "who [came to help|was the helper]?",
                "who helped?"]
ABOUT_HELPER_SAY = ["It was {helper}.", "{Helper} helped {hero}."]
PRAISE = ["[what a|that was a] [nice|good|lovely|beautiful|short] story[|!]",
          "I [like|liked|love] [the|that|your] story", "nice story", "good story[|, thank you]"]
PRAISE_SAY = ["Thank you! I am glad that you like it.", "Thank you! {hero} would be glad too."]
