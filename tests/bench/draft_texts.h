#pragma once

#include <string>

namespace cria::bench {

// What a model is asked, and what it is taken to answer.
struct DraftText {
  const char* name;
  std::string question;
  std::string answer;
};

// A document, of which the answer is an edited copy.
inline constexpr const char* kDocument =
    R"(Keeping a sourdough starter alive takes less work than most people expect. A starter is a mixture of
flour and water in which wild yeast and bacteria live together. The yeast makes the bread rise, and the
bacteria give it its sour taste. Both need to be fed, and both slow down when they are cold.

If you bake every day, keep the starter on the kitchen counter. Feed it each evening with equal weights of
flour and water, and throw away half of it before you do. After eight hours at room temperature it should
have doubled. A spoonful of it floats in a glass of water when it is ready to use.

If you bake once a week, keep the starter in the refrigerator. Take it out the day before you want to bake,
feed it twice, and put what is left back into the cold. A dark liquid on the surface is alcohol. It smells
sharp, but it does no harm: pour it off or stir it in. Pink or orange streaks are another matter. They are
the sign of bacteria that do not belong there, and the whole jar has to be thrown away.

Whole grain flour feeds a starter better than white flour, because more of the minerals are left in it. A
starter that has become slow often recovers after two or three meals of rye. Water from the tap is fine in
most places. Where it smells of chlorine, let it stand overnight in an open jug.

Travel is no reason to give a starter up. Spread a thin layer of it on baking paper, let it dry for a day,
and crumble it into a jar. The flakes keep for years. To wake them up, soak them in warm water for an hour,
add flour, and wait for the first bubbles, which may take three days.
)";

inline constexpr const char* kEditedDocument =
    R"(Keeping a sourdough starter alive takes less work than many people think. A starter is a mixture of
flour and water in which wild yeast and bacteria live together. The yeast makes the bread rise, and the
bacteria give it its sour taste. Both need to be fed, and both slow down when they are cold.

If you bake every day, keep the starter on the counter. Feed it each evening with equal weights of
flour and water, and discard half of it before you do. After eight hours at room temperature it should
have doubled. A spoonful of it floats in a glass of water when it is ready to use.

If you bake once a week, keep the starter in the fridge. Take it out the day before you want to bake,
feed it twice, and put what is left back into the cold. A dark liquid on the surface is alcohol. It smells
sharp, but it is harmless: pour it off or stir it in. Pink or orange streaks are another matter. They are
the sign of bacteria that do not belong there, and the whole jar must be thrown away.

Whole grain flour feeds a starter better than white flour, because more of the minerals are left in it. A
starter that has become slow usually recovers after two or three meals of rye. Water from the tap is fine in
most places. Where it smells of chlorine, let it stand overnight in an open jug.

Travel is no reason to give a starter up. Spread a thin layer of it on baking paper, let it dry for a day,
and crumble it into a jar. The flakes keep for years. To wake them up, soak them in warm water for an hour,
add flour, and wait for the first bubbles, which may take up to three days.
)";

inline constexpr const char* kReport =
    R"(Minutes of the meeting of the allotment association on 14 March. Present were Helga Brandt (chair), Tomas
Vik (treasurer), Amina Said, Piet de Groot and eleven members. The chair opened the meeting at half past six.
The treasurer reported an income of 4,310 euros from rents and 275 euros from the summer party. Expenses were
2,940 euros, of which 1,200 were spent on the new pump and 640 on insurance. The accounts were approved
without a vote against. Amina Said presented the plan for the compost yard beside the northern gate. It needs
a hard surface of forty square metres, two bays of larch wood and a roof against the rain. The estimate is
1,850 euros. The members agreed to begin in May, provided that the city gives its permission before 20 April.
Piet de Groot complained that the water is turned on too late in spring. The chair will ask the waterworks to
turn it on by 1 April at the latest. Plot 17 has been given up by the Lehmann family and goes to Nadia
Petrova, who has waited since 2019. Plot 23 stays empty until its shed has been repaired. The next meeting is
on 9 May at seven in the club house. The chair closed the meeting at ten past eight.
)";

inline constexpr const char* kExtraction =
    R"(Decisions: The accounts were approved without a vote against. The members agreed to begin in May, provided
that the city gives its permission before 20 April. The chair will ask the waterworks to turn it on by 1 April
at the latest. Plot 17 has been given up by the Lehmann family and goes to Nadia Petrova, who has waited since
2019. Plot 23 stays empty until its shed has been repaired.
Money: The treasurer reported an income of 4,310 euros from rents and 275 euros from the summer party.
Expenses were 2,940 euros, of which 1,200 were spent on the new pump and 640 on insurance. The estimate is
1,850 euros.
Plan: It needs a hard surface of forty square metres, two bays of larch wood and a roof against the rain.
Next: The next meeting is on 9 May at seven in the club house.
)";

inline constexpr const char* kProse =
    R"(My grandmother kept bees behind the railway station, in a strip of land that nobody else wanted. Every
April she painted her hives, never twice in one colour, so that by July her garden looked like a harbour full
of small boats. She claimed insects could recognise shades better than villagers recognised sense. When trains
thundered past, she would lift a hand, partly greeting drivers, partly calming whatever hummed beneath those
lids. I asked once why honey from lime trees tasted sharper; instead of answering, she sent me up a ladder with
my eyes closed and told me to guess which branch had flowered first. It took an hour, two stings, one torn
sleeve. Afterwards we sat on upturned crates eating bread, watching clouds drag their shadows across rusty
tracks. Decades later, living four hundred miles north among engineers who measure everything, I still catch
myself choosing paint for doors according to imaginary swarms. Science explains some of this: ultraviolet
patterns, polarised skies, dances performed on wax. Yet none of those papers mentions laughter, nor how an old
woman's palm could smell simultaneously of smoke, diesel, thyme. Perhaps knowledge travels best when disguised
as nonsense. Perhaps trains needed blessing. Either way, somebody must climb ladders blindfolded, otherwise
bitterness remains anonymous, and flowers open without witnesses.
)";

// Rows of a table as JSON objects: the keys repeat, the values do not.
inline std::string JsonRows(int first, int count) {
  constexpr const char* kCities[] = {"Oslo", "Lima", "Porto", "Quito", "Turin", "Malmo", "Cork"};
  constexpr const char* kStates[] = {"ready", "moving", "asleep", "charging", "lost"};
  std::string text;
  for (int i = first; i < first + count; ++i) {
    text += "  {\"sensor_id\": " + std::to_string(4001 + i * 37 % 499) + ", \"location\": \"" +
            kCities[i * i % 7] + "\", \"state\": \"" + kStates[i * 3 % 5] +
            "\", \"temperature_celsius\": " + std::to_string(11 + i * 29 % 23) + "." +
            std::to_string(i * 7 % 10) + ", \"battery_percent\": " + std::to_string(i * 53 % 101) +
            "},\n";
  }
  return text;
}

inline DraftText DraftTextNamed(const std::string& name) {
  if (name == "edit")
    return {"edit", std::string(kDocument) + "\nMake it shorter.\n", kEditedDocument};
  if (name == "extract") return {"extract", std::string(kReport) + "\nQuote it.\n", kExtraction};
  if (name == "json") return {"json", "[\n" + JsonRows(0, 3), JsonRows(3, 12)};
  return {"prose", "Tell me about your grandmother.\n", kProse};
}

}  // namespace cria::bench
