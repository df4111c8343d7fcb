#!/usr/bin/env python3
"""Write the corpus of the demo model: short stories from a seeded grammar, in our own words.

A story is one opening, one plot and at times an ending. A plot is a function that fixes what must stay consistent (who, what,
where, why) and returns a template. The template language knows four things:

    [one|two|]     one of the alternatives, nested at will; an empty one makes the text optional
    $slot          a value of the story's world (names, pronouns, things, places)
    a line break   a space
    an empty line  a new paragraph

Articles (a, an), capitals after a full stop and doubled spaces are put right at the end. Same seed, same bytes.

Output: ASCII, one story after another, each followed by one empty line; inside a story, paragraphs end in one newline.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

NAMES_HE = ("Pip", "Tom", "Max", "Ben", "Leo", "Sam", "Finn", "Oscar", "Hugo", "Otto", "Jack", "Bruno")
NAMES_SHE = ("Mia", "Lily", "Anna", "Rosa", "Nora", "Ella", "Lucy", "Daisy", "Tilly", "Ruby", "Clara", "Molly")
ANIMALS = (
    "fox",
    "rabbit",
    "bear",
    "mouse",
    "duck",
    "frog",
    "squirrel",
    "hedgehog",
    "cat",
    "dog",
    "otter",
    "deer",
    "goat",
    "lamb",
    "pig",
    "beaver",
    "badger",
    "dragon",
    "robot",
    "crow",
)
PARAGRAPH = "\n\n"
ADJECTIVES = (
    "little",
    "little",
    "little",
    "small",
    "young",
    "shy",
    "brave",
    "curious",
    "clever",
    "gentle",
    "cheerful",
    "quiet",
    "kind",
    "busy",
)
ELDERS = (
    ("the old owl", "she"),
    ("the old turtle", "he"),
    ("the old goose", "she"),
    ("the old horse", "he"),
    ("the baker", "he"),
    ("the miller", "he"),
    ("the gardener", "she"),
    ("the old sailor", "he"),
    ("the teacher", "she"),
    ("the clockmaker", "he"),
)
PLACES = (
    ("in a quiet forest", "in the forest"),
    ("at the edge of a dark forest", "in the forest"),
    ("in a green valley", "in the valley"),
    ("by the sea", "by the sea"),
    ("in a fishing village by the sea", "in the village"),
    ("on a small farm", "on the farm"),
    ("in a little village", "in the village"),
    ("near a wide river", "by the river"),
    ("on a windy hill", "on the hill"),
    ("at the foot of a tall mountain", "in the valley"),
    ("on a tiny island", "on the island"),
    ("in a town with crooked streets", "in the town"),
    ("beside a deep blue lake", "by the lake"),
    ("behind an old mill", "near the mill"),
    ("in a house under a big oak tree", "under the oak tree"),
)
HOBBIES = (
    "to sing",
    "to paint",
    "to read",
    "to climb trees",
    "to bake cakes",
    "to dance",
    "to count the stars",
    "to collect shells",
    "to tell jokes",
    "to look at maps",
    "to ask questions",
    "to jump in puddles",
    "to listen to stories",
    "to build things",
    "to pick flowers",
    "to watch the clouds",
)
THINGS = (
    "red scarf",
    "blue hat",
    "silver bell",
    "yellow kite",
    "green ball",
    "wooden boat",
    "little drum",
    "golden ring",
    "warm coat",
    "round mirror",
    "old book",
    "tin whistle",
    "soft blanket",
    "shiny key",
    "paper star",
    "wooden horse",
)
FRUITS = ("apples", "pears", "plums", "cherries", "nuts", "berries", "carrots", "cookies", "honey cakes", "strawberries")
WEATHER = ("sunny", "rainy", "windy", "foggy", "snowy", "cold", "warm")

Plot = Callable[["World"], str]
PLOTS: list[Plot] = []


# Plots whose last sentence is their end; the others may get one of ENDINGS.
ENDED = {
    "birthday",
    "borrowed",
    "different",
    "letter",
    "market",
    "moon",
    "noise",
    "quarrel",
    "sleepless",
    "snowman",
    "star",
    "tallest",
    "treasure",
}


def plot(function: Plot) -> Plot:
    """Register a plot."""
    PLOTS.append(function)
    return function


class World:
    """The facts of one story: slots for the templates, and the random choices."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.slots: dict[str, str] = {}
        self.friend_known = False
        kinds = rng.sample(ANIMALS, 3)
        places = rng.choice(PLACES)
        self._person("", rng.random() < 0.5, kinds[0], rng.random() < 0.3)
        self._person("f", rng.random() < 0.5, kinds[1], rng.random() < 0.15)
        elder, ehe = rng.choice(ELDERS)
        self.set(
            place=places[0],
            there=places[1],
            adj=rng.choice(ADJECTIVES),
            hobby=rng.choice(HOBBIES),
            other=kinds[2],
            elder=elder,
            ehe=ehe,
            ehis="her" if ehe == "she" else "his",
            ehim="her" if ehe == "she" else "him",
            color=rng.choice(("red", "blue", "green", "yellow", "white", "purple")),
        )

    def _person(self, prefix: str, male: bool, kind: str, child: bool) -> None:
        """Fill the slots of the hero (prefix "") or the friend (prefix "f"): name, kind and pronouns."""
        if child:
            kind = "boy" if male else "girl"
        taken = self.slots.get("h", "")
        name = self.rng.choice([n for n in (NAMES_HE if male else NAMES_SHE) if n != taken])
        he, him, his = ("he", "him", "his") if male else ("she", "her", "her")
        self.set(
            **{"h" if not prefix else "f": name, prefix + "kind": kind, prefix + "he": he, prefix + "him": him, prefix + "his": his}
        )

    def set(self, **slots: str) -> None:
        """Set slots."""
        self.slots.update(slots)

    def pick(self, options: Sequence):
        """One of the options."""
        return self.rng.choice(options)

    def begin(
        self,
        times: Sequence[str] = ("morning", "morning", "afternoon", "evening", "day"),
        weather: Sequence[str] = WEATHER,
        friend: bool = True,
        may_be_timed: bool = True,
    ) -> str:
        """The opening sentences; sets $t and $night, which start the plot, and $fi, which brings in the friend."""
        time, sky = self.pick(times), self.pick(weather)
        self.set(time=time, sky=sky)
        timed = time in ("morning", "afternoon", "evening") and may_be_timed and self.rng.random() < 0.35
        text = self.pick(TIMED_OPENINGS) if timed else self.pick(OPENINGS)
        if timed:
            self.set(t=self.pick((f"that {time},", f"that very {time},", "a little later,")))
        elif time == "day":
            self.set(t=self.pick(("one day,", "one day,", f"one {sky} day,")))
        else:
            self.set(t=self.pick((f"one {time},", f"one {sky} {time},", f"one {sky} {time},", f"on a {sky} {time},")))
        self.set(night=self.pick(("later that night,", "that night,") if timed else ("one night,", "late one night,")))
        if self.rng.random() < 0.4:
            text += " " + self.pick([t for t in TRAITS if "$hobby" not in t or "$hobby" not in text])
        if friend and self.rng.random() < 0.3:
            text += " " + self.pick(FRIENDS)
            self.friend_known = True
        self.set(fi="$f" if self.friend_known else self.pick(("$f the $fkind", "$his friend $f, a $fkind,", "a $fkind named $f")))
        return text

    def render(self, template: str) -> str:
        """Expand alternatives and slots, then put articles, capitals and spaces right."""
        text = self._expand(template.strip())
        while "$" in text:
            text = self._expand(re.sub(r"\$([a-z]+)", lambda m: self.slots[m.group(1)], text))
        text = re.sub(r" *\n *", "\n", text)
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
        text = re.sub(r" +", " ", text)
        text = re.sub(r"\n+", "\n", text)
        text = re.sub(r" ([.,!?])", r"\1", text)
        text = re.sub(r",([.,!?])", r"\1", text)
        text = re.sub(r"\b([Aa]) (?=[aeiou])(?!one\b|us|uni)", r"\1n ", text)
        text = re.sub(r'(^|\n|[.!?] |[.!?]" )("?)([a-z])', self._capital, text)
        return text.strip()

    @staticmethod
    def _capital(match: re.Match[str]) -> str:
        """Capitals start a sentence; after speech that ends in ! or ? the sentence runs on, so it is left alone."""
        lead, quote, letter = match.groups()
        runs_on = lead in ('!" ', '?" ') and not quote
        return lead + quote + (letter if runs_on else letter.upper())

    def _expand(self, template: str) -> str:
        """Replace every innermost [a|b|c] by one of its alternatives until none is left."""
        while "[" in template:
            template = re.sub(r"\[([^\[\]]*)\]", lambda m: self.rng.choice(m.group(1).split("|")), template)
        return template


OPENINGS = (
    "once upon a time, there was a $adj $kind named $h who lived $place.",
    "once upon a time, there was a $adj $kind named $h. $he lived $place.",
    "once upon a time, a $adj $kind named $h lived $place.",
    "once upon a time, $place, there lived a $adj $kind named $h.",
    "once there was a $adj $kind named $h who lived $place.",
    "there was once a $adj $kind whose name was $h. $he lived $place.",
    "$place lived a $adj $kind. $his name was $h.",
    "$place, there lived a $adj $kind named $h.",
    "$h was a $adj $kind who lived $place.",
    "the $adj $kind was called $h, and $he lived $place.",
    "the $adj $kind lived $place. $his name was $h.",
    "a $adj $kind named $h lived $place.",
    "long ago, $place, there was a $adj $kind named $h.",
    "far away, $place, lived a $adj $kind named $h.",
    "this is the story of $h, a $adj $kind who lived $place.",
    "everyone $there knew $h, the $adj $kind [with the big smile|with the kind eyes|who never sat still|who always hummed a tune].",
    "$h the $kind loved $hobby. $he lived $place.",
    """every [morning|evening], $h the $kind [walked down to the well and back|swept the steps of $his house|said hello to the sun|
    sat on the wall and hummed]. $he lived $place.""",
    "not so long ago, a $adj $kind named $h came to live $place.",
)
TIMED_OPENINGS = (
    "one $sky $time, a $adj $kind named $h [looked out of the window|sat on the front steps|stood at the door and yawned].",
    "it was a $sky $time. A $adj $kind named $h [was all alone at home|had nothing to do|looked up at the sky].",
    "on a $sky $time, $h the $kind [put on $his boots|ate a bowl of warm soup|opened the window wide].",
    "one $sky $time, $h the $kind [put on $his boots and went outside|walked along the path and hummed|was in a very good mood].",
    'the $adj $kind [looked out of the window|opened the door|stretched and yawned]. "[what a $sky $time|a $sky $time again]!" said $h.',
    '"what a $sky $time!" said $h, the $adj $kind who lived $place.',
    "the $time was $sky, and the $adj $kind [felt happy|felt a little bored|could not sit still]. $his name was $h.",
)
TRAITS = (
    "$he loved $hobby.",
    "$he loved $hobby more than anything.",
    "most of all, $he liked $hobby.",
    "$he was small, but $his heart was big.",
    "$he had a pocket full of string and a head full of ideas.",
    "$he was never in a hurry.",
    "$he always had time for a friend.",
    "$he asked a hundred questions a day.",
    "$his house was tiny, but it was always warm.",
    "$he had [big ears|bright eyes|a loud laugh|a soft voice|cold feet] and a kind heart.",
)
FRIENDS = (
    "$his best friend was a $fkind named $f.",
    "$he had one good friend, a $fkind named $f.",
    "next door lived $his friend $f, a $fkind.",
    "$h and $f the $fkind were best friends.",
)
ENDINGS = (
    "that night, $h slept very well.",
    "from that day on, $h was never sad for long.",
    "$h still tells that story today.",
    "$h went to bed happy and dreamed of [the sea|tomorrow|stars|warm bread|summer].",
    "and so they lived, happy and content, for many years.",
    "when the stars came out, $h was still smiling.",
    "and that is how it was.",
    "",
    "",
    "",
    "",
    "",
    "",
)


@plot
def lost_thing(w: World) -> str:
    """A loved thing is lost, searched for and found where its loss put it."""
    w.set(thing=w.pick(THINGS))
    why, found = w.pick(
        (
            (
                "the wind took it and carried it over the roofs",
                "[high up in a tree|on top of an apple tree], where it waved like a flag. $f [shook the branch|climbed up], and down it came",
            ),
            (
                "$he put it down to pick berries and forgot it",
                "next to the berry bush, just where $he had left it. A snail was asleep on it",
            ),
            ("it fell out of $his bag", "in the middle of the path. An ant was trying to carry it home"),
            (
                "it slipped from the bridge and into the stream",
                "between two stones in the water. It was wet, but it was not broken",
            ),
            ("it rolled down the hill while $he was asleep", "at the bottom of the hill, in a bed of flowers"),
            (
                "a [crow|bird] picked it up and flew away with it",
                "in a nest, with three tiny eggs beside it. The bird [was sorry|looked down] and gave it back",
            ),
        )
    )
    w.set(why=why, found=found)
    return (
        w.begin()
        + """
        [$he had a $thing that $he took everywhere|$his dearest thing was a $thing|for $his birthday, $he had got a $thing].

        $t $why. When $h saw that the $thing was gone, [$he began to cry|$he did not know what to do|$he sat down on a stone]. [$he
        looked under the bed|$he looked behind the door] and [in the garden|in the barn|behind the well], but it was not there. "[do not
        worry|do not cry|we will find it]," said $fi. "[let us look together|four eyes see more than two|I will help you look]."

        [they looked and looked|they walked back along the path|they asked everyone they met]. At last they found the $thing $found.
        "[there you are|I missed you]!" [cried|laughed] $h. [$he thanked $f and held the $thing tight|$he hugged $f and then the
        $thing|"thank you, $f," $he said. "You are better than any $thing."]"""
    )


@plot
def lost_and_given(w: World) -> str:
    """A lost thing has become someone's home, and is given up gladly."""
    w.set(thing=w.pick(("red scarf", "blue hat", "warm coat", "soft blanket", "old boot", "straw basket", "woolen sock")))
    w.set(small=w.pick(("a family of mice", "three baby birds", "a tiny hedgehog", "two sleepy kittens")))
    return (
        w.begin(friend=False)
        + PARAGRAPH
        + """
        $t $h could not find $his $thing. [$he turned the whole house upside down|$he looked in every corner| $he looked high and low].
        [$he asked $elder, but $ehe had not seen it|Even $elder did not know where it was]. [then|at last], $he heard a soft sound
        [behind the barn|under a bush|in the long grass]. There lay the $thing, and inside it slept $small. [they looked warm and
        happy|it was a cold day, but in there it was warm].

        $h [wanted to take the $thing home|reached out]. Then $he [stopped|looked again] and smiled. "[you need it more than I do|keep
        it]," $he whispered. "[winter is long|it makes a good house]." $he [tiptoed away|walked home without it], and $he did not feel
        cold at all. [The next day|a week later], $elder [made|gave] $him a new one. It was even [better|softer|nicer]."""
    )


FEARS = (
    ("the dark", "the old lamp went out", "the path was as black as ink", "the dark was only the day with its eyes closed"),
    (
        "deep water",
        "a toy boat got stuck in the middle of the pond",
        "the water came up to $his chin",
        "the water carried $him gently",
    ),
    (
        "high places",
        "$f was stuck on top of a tall tree",
        "the ground looked very far away",
        "from up there $he could see the whole world",
    ),
    (
        "thunder",
        "a storm came over the hill",
        "the thunder rolled like a hundred drums",
        "the thunder was only loud, and not mean at all",
    ),
    (
        "the big dog next door",
        "$f ran into the wrong garden",
        "the big dog stood up and looked at $him",
        "the big dog only wanted to play",
    ),
    (
        "the old cave",
        "$f went into the cave and did not come back",
        "drops of water went plop, plop in the dark",
        "the cave was full of shiny stones",
    ),
    (
        "the forest at night",
        "$f ran into the forest and did not come back",
        "every tree looked like a giant",
        "the trees stood around like old friends",
    ),
)


@plot
def fear(w: World) -> str:
    """Someone is afraid, a friend needs help, and the fear grows small."""
    what, event, scene, lesson = w.pick(FEARS)
    w.set(what=what, event=event, scene=scene, lesson=lesson)
    return (
        w.begin(("evening", "evening", "afternoon"), ("windy", "foggy", "cold", "warm"))
        + """
        [There was only one thing wrong: $h was afraid of $what|$he was not afraid of much, but $he was afraid of $what|but $h was
        afraid of $what].

        $t $fi came to visit, and they played [until the sun went down|all day|in the garden]. Suddenly $event. "[help|oh no|where are
        you]!" called $f.

        $h's [knees shook|heart beat fast|legs felt like soup]. "[I am scared|I cannot do it]," $he thought. "[but my friend needs
        me|but $f needs me more]." $he took a deep breath and went, step by step. $scene, but $he did not turn back. [soon|at last] $he
        [found $f|reached $f] and [took $fhim by the hand|held $fhim tight]. "[you came|you are so brave]!" said $f.

        "I was [afraid|scared] all the time," said $h. "[that is what brave means|that is how brave works]," said $f. [and $h found out
        that $lesson|then they looked around, and $lesson|after that, $h knew that $lesson]."""
    )


@plot
def sharing(w: World) -> str:
    """Someone keeps everything, finds it no fun, and shares."""
    w.set(fruit=w.pick(FRUITS), many=w.pick(("a whole basket of", "a big bag of", "a cart full of", "more than a hundred")))
    return (
        w.begin(("morning", "afternoon", "day"), ("sunny", "warm", "windy", "cold"))
        + PARAGRAPH
        + """
        $t $h came home with $many $fruit. [$fi came by and looked at them|On the way, $he met $fi]. "[may I have some|they look so
        good. May I try one]?" asked $f. "[no|certainly not]," said $h. "[they are all mine|I found them myself|I want to keep them]."
        So $f [went away|walked home] [with $fhis head down|without a word].

        $h ate and ate. [soon $his belly hurt|after a while they did not taste so good]. [the house was very quiet|there was nobody to
        talk to|it was no fun to eat alone]. "[what good are $fruit without a friend|why do I feel so bad]?" $he [thought|said to the
        wall].

        $he [picked up|took] the $fruit and [ran|hurried] to $f's house. "I am sorry," said $h. "[here, half of them are yours|please
        eat with me]." $f [smiled|laughed] and [opened the door wide|set out two plates|made a pot of tea]. They [ate|sat] together
        [until the moon came up|under the tree|and told funny stories], and [the $fruit had never tasted so sweet|every bite was twice
        as good|nothing was left but crumbs]."""
    )


@plot
def rescue(w: World) -> str:
    """A small one is helped and later helps in turn."""
    small = w.pick(("ant", "bee", "mouse", "snail", "butterfly", "ladybug", "sparrow", "beetle"))
    w.set(small=small)
    trap, tool = w.pick(
        (
            ("had fallen into the pond", "held out a long leaf"),
            ("was stuck in the mud", "pulled it out with a piece of string"),
            ("was caught in a spider web", "cut the web with a sharp stone"),
            ("lay on its back and could not get up", "turned it over with one finger"),
            ("was trapped under a fallen branch", "lifted the branch with both hands"),
        )
    )
    later, help_ = w.pick(
        (
            ("$h got lost in the fog", "it went ahead and showed $him the way home"),
            ("$h lost the key to $his house in the grass", "it crawled through the grass and came back with the key"),
            ("$h could not sleep and felt very lonely", "it sat on the window and kept $him company until morning"),
            ("$h dropped a ring into a crack in the floor", "it went down into the crack and pushed the ring out"),
            ("$h did not hear the storm that was coming", "it woke $him just in time to shut the windows"),
        )
    )
    w.set(trap=trap, tool=tool, later=later, assist=help_)
    return (
        w.begin(("morning", "afternoon", "day"), ("sunny", "rainy", "windy", "warm"), friend=False)
        + PARAGRAPH
        + """
        $t $h [was walking by the pond|was on the way to the market|heard a tiny voice in the grass]. a $small $trap. "[please help
        me|help, help]!" it cried. $h [did not think twice|stopped at once]. $he $tool, and [soon|in no time] the $small was safe.
        "[thank you|you are kind]," it said. "[one day I will help you too|I will not forget this]." $h [smiled|laughed a little]. "[you
        are so small|a $small, helping me]," $he said. "But thank you."

        [some days later|a week later|when the leaves turned red], $later. [$he called, but nobody came|$he did not know what to do].
        Then $he heard a tiny voice. It was the $small! "[I am here|I said I would help]," it said, and $assist.

        "[you are small|you may be small]," said $h, "but you are a [big|great] friend." [they shared a cup of tea|and from then on they
        met every day]."""
    )


@plot
def repair(w: World) -> str:
    """A storm breaks something; everybody brings a part and it is mended."""
    w.set(broken=w.pick(("bridge", "roof of the school", "fence", "little boat", "mill", "barn door", "tree house", "old well")))
    a, b, c = w.rng.sample(
        (
            "a bag of nails",
            "a long rope",
            "some boards",
            "a good hammer",
            "a pot of $color paint",
            "a ladder",
            "a basket of sandwiches",
            "a jug of cold lemonade",
        ),
        3,
    )
    w.set(one=a, two=b, three=c)
    return (
        w.begin(("day", "evening"), ("windy", "rainy", "cold"))
        + PARAGRAPH
        + """
        [one night|one autumn night|in the middle of the night], a [great|wild| terrible] storm came. The wind howled, and the rain fell
        like stones. In the morning, the $broken was broken. "[what shall we do now|who will fix it]?" everybody asked. "[it is too
        hard|nobody can fix that]," said $elder.

        But $h [rolled up $his sleeves|did not give up]. "[let us try|if we all help, we can do it|one of us cannot do it, but all of us
        can]," $he said. $fi [brought|came with] $one. $elder brought $two. A $other brought $three. [they worked all day long|they
        worked and sang until the sun went down]. $h [held the boards|hit $his thumb only once|made sure that nobody got tired].

        [by evening|at last], the $broken was [as good as new|better than before]. [everybody cheered|they danced around it]. "[we did
        it|look what we made]!" said $h. [and when the next storm came, it held|the wind blew again that night, but nothing moved]."""
    )


@plot
def newcomer(w: World) -> str:
    """Somebody new and shy is made welcome with a gift."""
    w.set(
        gift=w.pick(
            (
                "a warm loaf of bread",
                "a jar of honey",
                "a pot of soup",
                "a bunch of flowers",
                "an apple pie",
                "a little lamp",
                "a $color cup",
            )
        )
    )
    w.set(
        secret=w.pick(
            (
                "could play the flute",
                "knew the names of all the stars",
                "could walk on $fhis hands",
                "told the funniest stories",
                "could draw anything",
                "made the best pancakes",
                "could whistle like a bird",
            )
        )
    )
    return (
        w.begin(friend=False)
        + PARAGRAPH
        + """
        $t a new neighbor moved in. It was a $fkind named $f. $f did not [say a word to anyone|come out of the house]. "[$fhe must be
        proud|$fhe must be mean|what a strange $fkind]," people said.

        $h [was not so sure|did not think so]. "[maybe $fhe is only shy|maybe $fhe is lonely|I was new once, too]," $he said. So $he
        took $gift and knocked on the door. [knock, knock|tap, tap, tap]. The door opened a tiny bit. "[who is there|yes]?" whispered
        $f. "I am $h," said $h. "[welcome|I brought you something]." $f's eyes [grew big|began to shine]. "[nobody ever brought me
        anything|for me]?" $fhe said. "[do you want to come in|would you like to come in]?"

        They talked [all afternoon|until it was dark]. [it turned out that $f $secret|and guess what: $f $secret]. [soon everybody
        wanted to be $f's friend|the next day, $h told everyone, and they all came to see]. But [$h was the first|$f never forgot who
        had knocked first]."""
    )


@plot
def seed(w: World) -> str:
    """A seed, patience, and what came up."""
    grown, wonder = w.pick(
        (
            ("sunflower", "taller than the house"),
            ("pumpkin", "so big that a mouse could live in it"),
            ("apple tree", "full of sweet red apples"),
            ("rose", "as red as the evening sky"),
            ("bean plant", "so tall that it reached the window"),
            ("strawberry plant", "with more berries than $he could count"),
            ("cherry tree", "white with flowers"),
        )
    )
    w.set(grown=grown, wonder=wonder)
    return (
        w.begin(("morning", "day"), ("sunny", "warm", "windy"))
        + PARAGRAPH
        + """
        $t $elder gave $h a [tiny|small] seed. "[plant it and wait|be good to it|give it water and time]," $ehe said. $h [dug a
        hole|made a hole in the ground] and put the seed in. $he [waited|sat down and waited] all day, but nothing happened. "[it does
        not work|maybe it is asleep|grow]!" said $h.

        [the next day|the next morning] $he gave it water. [$he sang to it|$he told it a story|$he said good morning to it]. Still
        nothing. $f [laughed|shook $fhis head]. "[is that not just a bit of dirt|why do you sit there every day]?" asked $f. "[good
        things are slow|I am waiting for a friend]," said $h.

        Then, after [many days|three weeks], a [tiny green leaf|bit of green] came out of the ground. $h [jumped for joy|did not dare to
        breathe]. It grew and grew, and [by summer|in the end] it was a $grown, $wonder. [even $f came to look|everyone came to see it].
        "[how did you do that|what is your secret]?" asked $f. "[water and time|I waited]," said $h."""
    )


@plot
def birthday(w: World) -> str:
    """Everyone seems to have forgotten a birthday; they have not."""
    w.set(
        cake=w.pick(("a honey cake", "a huge carrot cake", "a cherry pie", "a cake as tall as a chair", "a nut cake")),
        thing=w.pick(THINGS),
        hid=w.pick(("behind the trees", "under the table", "behind the barn", "in the dark room")),
    )
    return (
        w.begin(("morning",), may_be_timed=False)
        + PARAGRAPH
        + """
        [$t $h woke up and smiled. It was $his birthday|it was $h's birthday|$h jumped out of bed. Today was $his birthday]! $he [put on
        $his best hat|brushed $his hair twice] and went out. $he met $fi. "[good morning|hello]," said $f. "[I am in a hurry|I have no
        time today]." And off $fhe went. $he met $elder. "[nice day|I must go]," $ehe said, and that was all.

        "[they all forgot|nobody remembers]," thought $h. $he [walked slowly home|sat by the water all day] and [felt very small|a tear
        ran down $his nose]. [when the sun went down|at last], $he opened $his door. It was dark and very quiet.

        "Surprise!" [Everyone jumped out|All $his friends were there|They had hidden $hid and now they jumped out]. There was $cake with
        [candles|tiny lights] on it, and $f gave $him a $thing. "[did you think we forgot|you did not guess it, did you]?" $f
        [laughed|asked]. [$h laughed and cried at the same time|$h did not know what to say, so $he hugged them all|"this is the best
        birthday ever," said $h]."""
    )


@plot
def wish(w: World) -> str:
    """A wish comes true and must be taken back."""
    ask, first, then = w.pick(
        (
            (
                "I wish it were summer all the time",
                "the sun shone every day, and $he swam in the lake",
                "the grass turned brown and the well ran dry",
            ),
            ("I wish I were as tall as a tree", "$he could see over all the roofs", "$he did not fit through $his own door"),
            (
                "I wish that everything I touch would turn to cake",
                "$he ate a cake chair and a cake door",
                "even $his pillow was full of crumbs",
            ),
            (
                "I wish it would snow right now",
                "$he built a snowman with a carrot nose",
                "it snowed and snowed until nobody could open a door",
            ),
            ("I wish that I never had to sleep", "$he played all night long", "everyone else was asleep and $he was all alone"),
            ("I wish I could fly", "$he flew in circles over the hill", "the wind blew $him farther and farther from home"),
            ("I wish I had all the toys in the world", "$he played with a thousand toys", "there was no room left to sit down"),
        )
    )
    w.set(
        ask=ask,
        first=first,
        thn=then,
        magic=w.pick(
            ("an old lamp", "a silver fish", "a round white stone", "a tiny golden bell", "a sleepy wizard", "a blue bottle")
        ),
    )
    return (
        w.begin(("morning", "afternoon", "evening"), friend=False)
        + PARAGRAPH
        + """
        $t $h found $magic [by the river|in the grass|under a bridge]. "[you may make one wish|I will give you one wish]," said a
        [deep|soft|strange] voice. $h [thought for a moment|did not have to think]. "$ask," $he said.

        [Poof|Ding|Whoosh]! And so it was. [at first|for a while], it was wonderful. $first. But [soon|after a week|then] $thn. "[oh
        dear|this is not what I wanted|this is no fun]," said $h.

        $he ran back. "[please, can I undo my wish|please take it back]," $he begged. "[I was happy before|I want things to be as they
        were]." The voice laughed [softly|kindly]. "[most people say that|now you have learned something]," it said. [Poof|Ding|Whoosh]!
        Everything was as before. $h [walked home|ran home] and [looked at $his little house|hugged $his mother]. It was [just
        right|just as it should be]. "[I wish for nothing at all|I have all I need]," said $h."""
    )


@plot
def lighthouse(w: World) -> str:
    """The light goes out on a stormy night, and somebody small keeps it burning."""
    w.set(
        place=w.pick(("in a lighthouse by the sea", "near a lighthouse by the sea", "on a tiny island with a lighthouse")),
        there="by the sea",
        boat=w.pick(("a fishing boat", "a ship with white sails", "$f's little boat", "a small red boat")),
        light=w.pick(
            (
                "lit a lantern and held it high",
                "made a fire on the rocks",
                "lit a hundred candles in the window",
                "climbed the stairs with a lamp on $his back",
            )
        ),
    )
    return (
        w.begin(("evening",), ("windy", "foggy", "rainy", "cold"), friend=False)
        + PARAGRAPH
        + """
        $night the great light went out. The wind howled, and the waves were as high as houses. Far out, $h saw $boat. "[they cannot see
        the rocks|without the light, they will hit the rocks]!" $he cried. [$he ran up the stairs, but the lamp was broken|the old
        keeper was ill in bed|there was no more oil].

        $h [thought hard|did not wait]. $he $light. [the wind tried to blow it out|the rain hissed and spat], but $h [stood still|stayed
        there] all night long. [$his arms hurt|$his fingers were cold], but $he did not put it down. [slowly, slowly|little by little],
        the boat turned and came [into the harbor|home].

        In the morning, [the sailors|everyone on the boat] came to say thank you. "[we saw a tiny light|your light was small]," they
        said, "[and it was enough|but it was the only one]." They gave $h [a sailor's hat|a silver whistle|a basket of fish], and [$he
        wore a proud smile|$he fell asleep on the spot]."""
    )


@plot
def race(w: World) -> str:
    """A race in which somebody stops to help."""
    w.set(
        other=w.pick(("duckling", "old mole", "baby bird", "little mouse")),
        prize=w.pick(("a golden cup", "a big cheese", "a $color ribbon", "a basket of $fruit")),
        fruit=w.pick(FRUITS),
        goal=w.pick(("to the old mill", "around the lake", "over the hill and back", "to the big oak tree")),
    )
    return (
        w.begin(("morning", "day"), ("sunny", "warm", "windy", "cold"))
        + PARAGRAPH
        + """
        $t there was a great race $goal. The prize was $prize. "[I will win|nobody is as fast as I am]," said $fi. "[Ready, steady,
        go|One, two, three, go]!" called $elder, and they ran.

        $f was [fast|in front], but $h was [close behind|even faster]. [half way there|near the end], $h heard someone cry. a $other had
        fallen into a ditch. $f [ran on|did not stop]. But $h [climbed down|stopped] and lifted the $other out. ["Thank you," it said.|]

        So $f won, and $h came last. [but at the end of the day|when the prize was given], $elder said, "[Some are quick on their
        feet|One was fast today]. $h is quick in the heart." $f's ears turned red. "[you are right|$h should have it]," said $f, and
        they shared the prize. [next time, they both stopped.|]"""
    )


@plot
def truth(w: World) -> str:
    """Something is broken, someone else is blamed, and the truth is told."""
    w.set(
        pot=w.pick(("blue vase", "big window", "best plate", "old clock", "flower pot", "tea pot")),
        whose=w.pick(("$elder's", "$his mother's", "$his grandmother's")),
        blame=w.pick(("the wind", "the cat", "a bird", "$f")),
    )
    forgiver = {"$elder's": "$elder", "$his mother's": "$his mother", "$his grandmother's": "$his grandmother"}[w.slots["whose"]]
    w.set(who=forgiver)
    return (
        w.begin(("afternoon", "morning", "day"), friend=True)
        + PARAGRAPH
        + """
        $t $h was [playing with a ball|dancing in the kitchen|running in the house]. Crash! $whose $pot [fell down and broke|was in
        pieces|lay on the floor in a hundred pieces]. $h [was very frightened|looked around. Nobody had seen it]. When $who came in, $h
        said, "[It was $blame|That was $blame]!"

        [that night, $h could not sleep|all day long, $h felt heavy, as if $he had eaten a stone|at dinner, $h could not eat]. [the lie
        grew bigger and bigger in $his head|something in $his belly would not be quiet]. At last $he [got up|could not stand it any
        more] and went to $who. "[it was not $blame|I told a lie]," $he said in a small voice. "I broke the $pot. I am sorry."

        $who [was quiet for a moment|put down the tea]. "[thank you for telling me|a $pot can be fixed|I am glad you told me]," came the
        answer. "[telling the truth is hard|pots break, but trust is harder to mend], and you did it." Together they [glued the
        pieces|mended it]. [it had cracks now, but they liked it even more|and $h felt as light as a feather]."""
    )


@plot
def moon(w: World) -> str:
    """Somebody wants the moon, and gets something of it."""
    way, result = w.pick(
        (
            ("built a tower of chairs", "the tower shook, and down $he fell into the hay"),
            ("threw a rope at it", "the rope came back and hit $him on the head"),
            ("climbed the highest tree", "the moon was still far away"),
            ("jumped as high as $he could", "the moon only smiled"),
            ("ran after it over three hills", "the moon ran just as fast"),
        )
    )
    w.set(way=way, result=result)
    return (
        w.begin(("evening",), ("warm", "cold", "windy"))
        + PARAGRAPH
        + """
        $night the moon was [round and yellow like a cheese|big and bright|so near that $h could almost touch it]. "[I want to have it|I
        want to take it home]," said $h. $he $way, but $result.

        $fi [watched $him|came by and laughed]. "[what are you doing|why are you out so late]?" $fhe asked. "[I want to catch the moon|I
        need the moon]," said $h. $f [thought about it|sat down to think]. "[I know how|come with me]," said $f, and they went to [the
        pond|the lake|the well]. There was the moon, right in the water! $h [dipped in a bucket|filled a bowl with water]. The moon
        [swam in it|lay in it like a coin].

        $h carried it home [very slowly|without spilling a drop] and put it [by the bed|by the window]. [in the morning it was gone|when
        the sun came up, the moon had gone]. "[it went home|it had to go to work]," said $f. "[it will come back|moons are like that]."
        And that night, [there it was again|it shone in at the window, just for $h]."""
    )


@plot
def soup(w: World) -> str:
    """A soup for everyone from what each can give."""
    a, b, c = w.rng.sample(
        ("a carrot", "an onion", "a potato", "some salt", "a bunch of herbs", "a cup of beans", "a mushroom", "a piece of butter"),
        3,
    )
    w.set(one=a, two=b, three=c)
    return (
        w.begin(("evening", "day", "afternoon"), ("cold", "snowy", "rainy", "windy"))
        + PARAGRAPH
        + """
        $t $h was hungry, but there was [only a pot of water|nothing in the house but water and a stone]. So $he made a fire and put the
        pot on it. "[what are you cooking|what is in the pot]?" asked $fi. "[soup|the best soup in the world]," said $h. "[only
        something is missing|it needs just a little more]." $f looked into the pot. "[I have $one at home|I can give $one]," $fhe said,
        and went to get it.

        Then $elder came by. "[it smells good|is that soup]," $ehe said, and put in $two. A [hungry|cold|tired] $other brought $three.
        [the pot began to sing|soon it smelled wonderful|bubble, bubble, went the pot].

        [there was enough for everyone|they all ate two bowls, and there was still some left]. [outside the wind blew|it was cold
        outside], but [inside it was warm|nobody noticed]. "[who made this good soup|what do you call this soup]?" asked $elder. "[we
        all did|friend soup]," said $h."""
    )


@plot
def song(w: World) -> str:
    """A strange music is followed to its source."""
    source, end = w.pick(
        (
            ("the wind, playing in a row of empty bottles", "hung one bottle in $his own window, and the wind played there too"),
            ("a tiny cricket with a broken leg", "put the cricket in a warm box, and it sang for $him every night"),
            ("$elder, playing an old flute all alone", "asked to learn it, and soon there were two flutes"),
            ("a stream, running under the ice", "knew that spring was near and told everyone"),
            ("a music box that somebody had lost", "wound it up, and all the birds came to listen"),
            ("a blackbird teaching its children to sing", "sat down and took a lesson too"),
        )
    )
    w.set(source=source, end=end)
    return (
        w.begin(("evening", "morning"), ("windy", "foggy", "cold", "warm"))
        + PARAGRAPH
        + """
        $t $h heard [a strange song|soft music|a tune that $he did not know]. It was [sad and sweet|like silver bells|very quiet]. "[who
        is that|do you hear that]?" $he asked $fi. "[I hear nothing|it is only your ears]," said $f. But $h [wanted to know|could not
        forget it]. So they went [to look|together].

        They looked [behind the church|behind the mill|in the garden], but [nobody was there|there was only a sleepy cat]. They walked
        [over the hill|along the river|through the tall grass]. The music [grew louder|came nearer]. "[now I hear it too|you were
        right]," whispered $f.

        And then they saw it. It was $source! They [sat down|stood still] and listened [for a long time|until it was over]. [nobody said
        a word.|$f's eyes were wet.|] Then $h $end. [and on quiet evenings, you can hear it still.|"[the world is full of songs|there is
        music everywhere]," said $h. "You only have to listen."]"""
    )


@plot
def treasure(w: World) -> str:
    """An old map leads to a treasure that is no gold."""
    find, meaning = w.pick(
        (
            ("a hundred old books", "they read one every night, all through the winter"),
            (
                "a bag of seeds and a note that said: plant us",
                "they planted them, and in spring the whole hill was full of flowers",
            ),
            ("a mirror with the words: here is the treasure", "they looked in and saw two good friends"),
            ("a letter from a child who had lived long ago", "they wrote an answer and put it back for the next finder"),
            ("a box of paints", "they painted every door in town"),
            ("nothing but a bench with a view of the whole land", "they sat there and watched the sun go down"),
            ("a toy train and a long, long track", "they built it all around the house"),
        )
    )
    w.set(
        find=find,
        meaning=meaning,
        spot=w.pick(
            (
                "under the floor",
                "inside an old book",
                "in a bottle on the shore",
                "behind a loose stone",
                "in the pocket of an old coat",
            )
        ),
    )
    return (
        w.begin()
        + PARAGRAPH
        + """
        $t $h found a map $spot. [there was a big red cross on it|in one corner there was a cross]. "[a treasure|it must be a treasure
        map]!" $he cried, and ran to $fi. "[gold|maybe it is gold]!" said $f. "[we will be rich|let us go at once]!"

        They walked [past the old mill|through a dark wood], [over a shaky bridge|around the lake], and [up a steep hill|through a field
        of thistles]. [$f fell into a puddle|they got lost twice]. "[I am tired|my feet hurt]," said $f. "[just a little more|the map
        says ten more steps]," said $h. [There they began to look|They looked all around]. ["Here it is!" cried $f|"This must be the
        place," said $h].

        They had found $find. "[no gold|that is all]?" asked $f. [They looked at each other and began to laugh|$h thought for a moment
        and then smiled]. [then|so] $meaning. "[it was a real treasure|I like it better than gold]," said $f."""
    )


@plot
def sleepless(w: World) -> str:
    """Somebody cannot sleep."""
    trouble, cure = w.pick(
        (
            ("the bed was too hard", "the soft grass tickled $his nose, and the crickets sang"),
            ("$he was thinking too much", "$he told all $his thoughts to the moon, one by one, until none were left"),
            ("the wind whistled in the chimney", "$he whistled back, and the wind became quiet to listen"),
            ("the house was too quiet", "the rain began to fall, tip tap, tip tap"),
            ("$he missed $his friend $f", "$he heard a knock, and there was $f, who could not sleep either"),
        )
    )
    a, b = w.rng.sample(
        (
            ("$he drank a cup of warm milk", "now $he had to go to the bathroom"),
            ("$he counted sheep", "one sheep stopped and wanted to talk"),
            ("$he turned $his pillow around", "it was just the same on the other side"),
            ("$he read a book", "it was so good that $he woke up even more"),
            ("$he closed $his eyes very hard", "it made $his nose itch"),
        ),
        2,
    )
    w.set(trouble=trouble, cure=cure, one=a[0], oneb=a[1], two=b[0], twob=b[1])
    return (
        w.begin(("evening",), ("warm", "windy", "cold"), friend=False)
        + PARAGRAPH
        + """
        $night $h could not sleep, because $trouble. $he turned to the left and to the right. $one, but $oneb. $two, but $twob. "[I will
        never sleep again|this is hopeless]," [sighed|said] $h.

        $he [got up and went outside|put on a coat and went outside]. $elder [came by with a lantern|was out for a walk]. "[are you not
        tired|can you not sleep]?" asked $elder. "[not one bit|no]," said $h. "[then do not try|sleep is like a cat]," said $elder. "It
        comes when you do not call it."

        So $h [sat down|stayed where $he was] and [did nothing at all|just listened]. After a while, $cure. [$h yawned|$h's eyes grew
        heavy]. [once, twice, and then|before $he could count to three,] $he was fast asleep."""
    )


@plot
def letter(w: World) -> str:
    """A letter sent without an address finds a friend."""
    w.set(
        sent=w.pick(
            (
                "put it in a bottle and threw it into the sea",
                "tied it to a $color balloon and let go",
                "folded it into a paper boat and set it on the stream",
                "gave it to a wild goose that was flying south",
            )
        ),
        asked=w.pick(
            ("What can you see from your window?", "Do you like soup?", "What makes you laugh?", "Is there snow where you live?")
        ),
        answer=w.pick(
            (
                "From my window I see a mountain with a white hat.",
                "I like soup, but I like cake more.",
                "I laugh when my hat blows away.",
                "Here it is so warm that we sleep outside.",
            )
        ),
    )
    pair = w.pick(
        (
            ("What can you see from your window?", "I can see a mountain with a white hat."),
            ("Do you like soup?", "I like soup, but I like cake more."),
            ("What makes you laugh?", "I laugh when the wind takes my hat."),
            ("Is there snow where you live?", "No, it is so warm that we sleep outside."),
            ("Are you sometimes lonely?", "Yes, but not any more."),
        )
    )
    w.set(asked=pair[0], answer=pair[1])
    return (
        w.begin(friend=False, may_be_timed=False)
        + """
        [Sometimes|Now and then] $he felt lonely.

        $t $h wrote a letter. "[dear somebody|dear friend]," $he wrote. "[my name is $h|I am $h]. $asked" Then $he $sent. $he waited [a
        week|many days|all spring], but no answer came.

        But [one $sky day|one fine day], there was [a letter at the door|a letter under a stone]. It smelled of [salt|flowers|pine
        trees]. "[dear $h|hello, $h]," it said. "$answer [write again soon|please write back]. Your friend, $f." $h read it [ten
        times|again and again].

        $he wrote back [at once|that same night], and so it went on, letter after letter. [in the summer|the next year], a [boat|cart]
        stopped at the door, and a $fkind got out. "Are you $h?" asked the $fkind. "[yes|I am]," said $h, "[and you are $f|you look just
        like your letters]!" [They talked all night|They hugged like old friends]."""
    )


@plot
def paint(w: World) -> str:
    """Colour comes to a gray place."""
    w.set(
        town=w.pick(("gray street", "gray town", "dull old wall", "bare room", "gray harbor")),
        what=w.pick(
            (
                "a huge sun",
                "a long blue whale",
                "a tree full of birds",
                "a field of flowers",
                "a ship with $color sails",
                "a smiling moon",
            )
        ),
    )
    return (
        w.begin(("morning", "day"), ("cold", "foggy", "rainy", "windy"))
        + """
        Near $his house there was a $town, and nobody liked to [go there|look at it].

        $t $h took a brush and some paint. $he painted and painted. When $fi came by, $fhe [stopped|stared]. "[what is that|what are you
        doing]?" asked $f. "[wait and see|I am making a hole in the gray]," said $h. By noon, you could see $what.

        Not everyone [was happy|liked it]. "[who said you could do that|it is too bright]," said $elder. But then [a baby laughed and
        pointed at it|a child began to dance in front of it|an old woman stopped and smiled for the first time in years]. $elder [looked
        again|scratched $ehis head]. "[well|hm]," $ehe said, "[maybe a little more yellow|is there another brush]?"

        [soon everyone was painting|the next day, everyone came with a brush]. [and when the rain came, the colors only shone
        brighter|now people come from far away to see it]. "[gray is only waiting|every wall is a picture that nobody has painted yet],"
        said $h."""
    )


@plot
def lost_way(w: World) -> str:
    """Somebody walks too far and something small leads home."""
    guide, how = w.pick(
        (
            ("the bell of the village church", "$he walked toward the sound, one step after another"),
            ("the smell of fresh bread", "$he followed $his nose, past the mill and over the bridge"),
            ("a little stream", "$he remembered that the stream runs past $his house, and $he followed it"),
            ("$his own footprints in the mud", "$he put $his feet into them, one by one, all the way back"),
            ("a firefly with a tiny light", "it flew slowly, so that $he could keep up"),
            ("the brightest star", "$he kept it in front of $him, as $elder had taught $him"),
        )
    )
    w.set(
        guide=guide,
        how=how,
        lure=w.pick(
            ("a blue butterfly", "a rolling hat", "a white feather in the wind", "a funny little bird", "a row of mushrooms")
        ),
    )
    return (
        w.begin(("afternoon", "afternoon", "morning"), ("foggy", "windy", "warm", "cold"), friend=False)
        + PARAGRAPH
        + """
        $t $h [followed $lure|saw $lure and ran after it]. [it went on and on|$he did not look where $he was going]. When $he looked up,
        [nothing looked the same|$he did not know this place]. [the trees were tall and strange|fog was coming up from the ground|it was
        getting dark]. "[hello|is anybody there]?" called $h. Nobody answered.

        $h wanted to cry. But then $he remembered what $his [mother|grandmother|father] always said: "[When you are lost, stop and
        listen|First sit down, then think]." So $he [sat down on a log|stood very still]. And then $he noticed it: $guide! $how.

        [it was a long way|$his legs were tired], but [at last|soon] $he saw [a yellow window|the light in the window]. "[I was so
        worried|there you are]!" cried $his mother, and [wrapped $him in a blanket|held $him for a long time]. $h [ate three bowls of
        soup|told the whole story], and then [fell asleep at the table|went straight to bed]."""
    )


@plot
def practice(w: World) -> str:
    """Learning takes many tries."""
    skill, fail, ok = w.pick(
        (
            ("to swim", "$he swallowed half of the lake", "$he swam all the way to the other side"),
            ("to skate", "$he sat down hard on the ice", "$he made a perfect circle on the ice"),
            ("to whistle", "only air came out", "a clear, bright note came out"),
            ("to ride a bike", "$he rode into a bush", "$he rode down the lane with $his arms in the air"),
            ("to juggle", "the balls fell on $his head", "three balls danced in the air"),
            ("to bake bread", "it came out as hard as a stone", "it came out golden and soft"),
            ("to play the drum", "the cat ran out of the house", "everyone began to tap their feet"),
            ("to fly a kite", "the kite fell into the mud", "the kite danced high up in the blue sky"),
        )
    )
    w.set(skill=skill, fail=fail, ok=ok)
    return (
        w.begin(("morning", "day"), ("cold", "windy", "sunny"))
        + PARAGRAPH
        + """
        $t $h wanted to learn $skill. [it looked so easy.|] $he tried once, and $fail. $he tried again, and $fail again. "[I will never
        learn it|I am no good at this]," $he said and [kicked a stone|sat down on the ground].

        $fi sat down next to $him. "[how many times did you try|how often have you tried]?" asked $f. "[two times|twice]," said $h. "[I
        tried a hundred times|it took me a whole year]," said $f. "[falling is a part of it|every mistake is a step]."

        So $h tried again [the next day|in the rain and in the sun], and the next, and the next. [little by little, it got better.|] And
        then, [one evening|one morning], $ok! "[I can do it|look, look]!" cried $h. $f [clapped|cheered]. "How many times did you try?"
        asked $f. "[I stopped counting|I forgot to count]," said $h."""
    )


@plot
def different(w: World) -> str:
    """What was odd about someone turns out to be just what is needed."""
    kind, odd, need, use = w.pick(
        (
            (
                "dragon",
                "could not breathe fire, only warm air",
                "the apple trees were freezing in a late frost",
                "blew warm air on every tree until morning",
            ),
            (
                "owl",
                "was awake in the day and slept at night",
                "everyone needed someone to watch the children by day",
                "watched over them and told them stories",
            ),
            (
                "duck",
                "did not like water and always walked",
                "the pond dried up and all the ducks had to walk",
                "knew every path and led them to a new pond",
            ),
            (
                "robot",
                "moved very slowly",
                "a bridge was so old that nobody dared to cross it",
                "carried everyone over it, one slow step after another",
            ),
            (
                "giraffe",
                "had a very short neck",
                "a kitten was hiding under a low bush and would not come out",
                "bent down and coaxed it out",
            ),
            (
                "bear",
                "could not sleep in winter",
                "a lamb was lost in the snow",
                "was the only one awake, and went out and found it",
            ),
            (
                "cloud",
                "was too small to make rain",
                "one little flower was thirsty",
                "let fall three drops, and that was just enough",
            ),
            (
                "rooster",
                "could only whisper",
                "a baby had just fallen asleep after crying all night",
                "woke everybody very gently, one by one",
            ),
            ("firefly", "could not turn off its light", "a child was lost in the dark wood", "lit the path all the way home"),
        )
    )
    w.set(kind=kind, odd=odd, need=need, use=use)
    return """
        [once upon a time, there was a $kind named $h|$h was a $kind|there was once a $kind named $h|far away, there lived a $kind named
        $h] who [was not like the others|was a little different]. $h $odd. "[what kind of $kind is that|how funny]!" the others
        [said|laughed]. "[a real $kind is not like that|you are no real $kind]." $h [felt sad|went away and hid] and [tried very hard to
        be like everyone else|looked at the ground]. It did not work.

        But then [came a hard time|something happened]: $need. Nobody knew what to do. [they tried this and that|they ran here and
        there], but nothing helped. "[let me try|I think I can help]," said $h [in a small voice|quietly]. And $h $use.

        [After that, nobody laughed|everybody was very quiet|the others looked at each other]. "[we are sorry|we were wrong]," they
        said. "[you are just right as you are|it is good that you are different]." [and $h felt very proud|$h smiled from ear to ear].
        "[I am the same as before|I only did what I do]," said $h. "[you just could not see it|that is all]."
    """


@plot
def clock(w: World) -> str:
    """A clock stops for a good reason."""
    inside, fix = w.pick(
        (
            (
                "a family of mice, fast asleep between the wheels",
                "made them a bed of wool in a box and carried them down, one by one",
            ),
            ("a bird with a nest full of eggs", "waited until the little ones could fly, and told the time by the sun until then"),
            (
                "a tiny spider who had spun a web around the wheels",
                "asked it kindly to move to the window, where there were more flies",
            ),
            ("a sleepy bat that hung from the big hand", "hung a dark curtain in a corner, and the bat moved there"),
            (
                "a lost $color glove, stuck between two wheels",
                "pulled it out and gave it back to $elder, who had missed it all winter",
            ),
        )
    )
    w.set(inside=inside, fix=fix, place="in a town with a tall clock tower", there="in the town")
    if w.slots["elder"] in ("the baker", "the clockmaker"):
        w.set(elder="the teacher", ehe="he", ehis="his", ehim="him")
    return (
        w.begin(("morning",))
        + PARAGRAPH
        + """
        $t the big clock stopped. [nobody knew what time it was.|] The baker [burned the bread|baked at midnight], and $elder [had lunch
        three times|went to bed in the middle of the day]. "[somebody must climb up|one of us has to go up there]," people said, but the
        stairs were [old and dark|very steep].

        "I will go," said $h. $f came too, [with a lantern|one step behind]. Up and up they went, [a hundred steps|round and round]. And
        there they saw $inside. "[so that is why|oh]," whispered $h.

        [$h thought about it|they thought hard], and then $h $fix. [tick, tock, tick, tock|and the clock began to run again]. [down in
        the square, everyone cheered|the bell rang out over the roofs]. "[how did you do it|what was it]?" people asked. [$h only
        smiled|"it just needed a friend," said $h]."""
    )


@plot
def sick_friend(w: World) -> str:
    """A friend is ill and is cheered up."""
    w.set(
        ill=w.pick(("had a bad cold", "had a sore throat", "had a fever", "had a broken leg", "had a tummy ache")),
        bring=w.pick(("a pot of hot soup", "a jar of honey", "a bunch of flowers", "a basket of $fruit", "a book with pictures")),
        fruit=w.pick(FRUITS),
        trick=w.pick(
            (
                "put on a funny hat and danced",
                "made a puppet out of a sock",
                "told the story of the pig who wanted to fly",
                "sang all the songs $he knew, most of them wrong",
                "made shadow animals on the wall",
            )
        ),
    )
    return (
        w.begin(("morning", "afternoon", "day"), ("rainy", "cold", "windy", "snowy"))
        + PARAGRAPH
        + """
        $t $h wanted to play with $fi. But $f was in bed and $ill. "[I cannot play today|go and play without me]," said $f. $h walked
        home slowly. Then $he had an idea.

        $he [packed a bag|ran to the kitchen] and came back with $bring. "[this will make you strong|here, this is for you]," said $h.
        $f [ate a little|smiled a little]. Then $h $trick. $f began to laugh. $fhe laughed until the bed shook. "[I think I feel
        better|oh, my belly]!" cried $f.

        $h came back every day, [in rain and wind|without fail], and soon $f was well again. "[what was the best medicine|how did you
        get well so quickly]?" asked $elder. $f [pointed at $h|smiled]. "[that one over there|my friend]," said $f."""
    )


@plot
def quarrel(w: World) -> str:
    """Two friends fight over a thing, lose it, and make up."""
    w.set(thing=w.pick(("swing", "red kite", "wooden sled", "big ball", "little boat", "toy train")))
    gone = {
        "swing": "the rope broke, and they both fell in the grass",
        "red kite": "the string broke, and the kite flew away over the hill",
        "wooden sled": "the sled slid away without them and hit a tree",
        "big ball": "the ball flew out of their hands and over the wall",
        "little boat": "the boat drifted out on the lake with nobody in it",
        "toy train": "the train broke in two",
    }
    mend = {
        "swing": "found a stronger rope and tied it with two knots",
        "red kite": "made a new kite out of paper and sticks",
        "wooden sled": "took a hammer and nails and mended the sled",
        "big ball": "made a ladder with their backs and climbed over the wall",
        "little boat": "fished it out with a long stick",
        "toy train": "put it back together with glue and string",
    }
    w.set(gone=gone[w.slots["thing"]], mend=mend[w.slots["thing"]])
    return (
        w.begin(("afternoon", "morning", "day"), ("sunny", "windy", "warm", "cold"))
        + PARAGRAPH
        + """
        $t $h and $fi [found a|were playing with a] $thing. "[me first|I want it first]!" said $h. "No, me!" said $f. [they pulled this
        way and that way|neither of them would let go]. And then [it happened|there was a loud noise]: $gone. "[that is your fault|now
        look what you have done]!" [they both shouted|shouted $h]. They went home without a word.

        [$h tried to play alone, but it was dull|$h was angry, and then $he was only sad]. "[I miss $f|a $thing is just a thing]," $he
        thought. "[but a friend is a friend|but there is only one $f]." $he opened the door to go, and there stood $f, [with one hand up
        to knock|out of breath].

        "I am sorry," they both said at the same time. Then they [laughed|had to laugh]. Together they $mend. "[you first|you go
        first]," said $h. "No, you," said $f. And [they almost began to fight again|they took turns all day]."""
    )


@plot
def winter(w: World) -> str:
    """One gathers, one sings; in winter they need each other."""
    w.set(
        food=w.pick(("nuts", "apples", "corn", "beans", "carrots")),
        art=w.pick(("played the fiddle", "sang songs", "told stories", "danced and whistled")),
    )
    w.set(
        arttwo={
            "played the fiddle": "play the fiddle",
            "sang songs": "sing",
            "told stories": "tell stories",
            "danced and whistled": "dance and whistle",
        }[w.slots["art"]]
    )
    return (
        w.begin(("day",), ("sunny", "warm"), may_be_timed=False)
        + PARAGRAPH
        + """
        All summer long, $h worked. $he [carried $food into the cellar|filled the barn with $food], [one by one|bag after bag]. $fi [lay
        in the sun and|sat on the fence and] $art. "[winter is coming|you should work too]," said $h. "[it is too nice today|somebody
        has to enjoy the summer]," said $f.

        Then the snow came. One [evening|night], there was a knock at the door. It was $f, [thin and cold|white with snow]. "[I have
        nothing to eat|you were right]," said $f. $h [thought of all the hard work|looked at $his full shelves]. "[come in|sit down and
        eat]," $he said.

        $h had [enough $food for two|plenty of $food], but the evenings were long and dark. [so $f would $arttwo|and then $f would
        $arttwo], and the dark did not seem so dark. "[you kept me warm|without you I would be cold]," said $f. "[and you kept me
        happy|without you I would be bored]," said $h. "[that makes us even|now we are even]."
    """
    )


@plot
def noise(w: World) -> str:
    """A strange noise in the night has a friendly cause."""
    sound, cause, end = w.pick(
        (
            ("scratch, scratch", "a kitten, wet from the rain", "the kitten stayed, and slept on $his feet every night"),
            ("bump, bump, bump", "a turtle that had lost its way on the stairs", "$he carried it back to the pond in the morning"),
            ("hoo, hoo", "a baby owl that was afraid of the dark", "$he sat with it until its mother came"),
            (
                "drip, drop, drip",
                "a hole in the roof, and the rain coming in",
                "$he put a pot under it, and the drops played a little tune",
            ),
            ("crunch, crunch", "a mouse with the last of the cookies", "$he cut it a piece of cheese, and they talked until dawn"),
            ("rattle, rattle", "the old window, shaking in the wind", "$he put a sock in the crack, and all was quiet"),
            ("squeak, squeak", "a little bat with a hurt wing", "$he made it a bed in a shoe until it could fly again"),
        )
    )
    w.set(
        sound=sound,
        cause=cause,
        end=end,
        where=w.pick(("from the attic", "from the cellar", "from behind the door", "from the kitchen", "from under the stairs")),
    )
    return (
        w.begin(("evening",), ("rainy", "windy", "cold"), friend=True)
        + PARAGRAPH
        + """
        $night $h woke up. There was a noise $where. $sound. $h pulled the blanket over $his [head|ears]. $sound. "[what is that
        thing|maybe it is a ghost|maybe it is a monster]," $he [thought|whispered]. [$his heart went boom, boom|$his toes grew cold].

        [$he called $f, who lived next door|$f, who was staying for the night, woke up too]. "[I hear it too|monsters do not sound like
        that]," said $f. [they took a candle and a broom|$f took a spoon, and $h took a pillow]. Step by step they went [in the
        dark|closer]. $sound. "[one, two, three|now]!" said $h, and [pulled open the door|held up the light].

        It was $cause. $h [let out a long breath|began to laugh]. "[so that is the monster|is that all]!" said $f. In the end, $end.
        [and the next time $h heard a noise, $he was more curious than afraid|most monsters, $h thought, just need a little light]."""
    )


@plot
def present(w: World) -> str:
    """A present for someone dear, with hardly any money."""
    wanted, made = w.pick(
        (
            ("a silver comb", "a comb of wood, with a tiny bird on it"),
            ("a warm shawl", "a shawl of wool in every color"),
            ("a golden frame", "a frame of shells"),
            ("a fine tea cup", "a cup of clay, a little crooked"),
            ("a music box", "a song with four verses"),
            ("a lamp from the city", "a lamp from a jar and a candle"),
        )
    )
    w.set(
        wanted=wanted,
        made=made,
        coins=w.pick(("two coins", "three coins", "one coin", "five coins")),
        who=w.pick(("mother", "grandmother")),
    )
    return (
        w.begin(("morning", "day", "afternoon"), ("cold", "snowy", "sunny", "windy"), friend=False)
        + PARAGRAPH
        + """
        $t $h wanted to buy a present for $his $who. In the shop window there was $wanted. But $he had only $coins. $he [walked
        away|went home] with a heavy heart.

        On the way, $he met $elder. "[why so sad|what is wrong]?" asked $elder. $h told $ehim everything. "[what you buy, anyone can
        buy|a thing from a shop is nice]," said $elder. "[but what you make, only you can give|but it does not know her name]. I will
        [help you|show you how]." So $h worked [every evening|for three days]. [$he pricked $his thumb|it went wrong twice], but at last
        it was done: $made.

        $his $who opened it [slowly|with shaking hands]. "[is this from you|did you make it yourself]?" she asked. $h [nodded|looked at
        $his feet]. Then $his $who [held it to her heart|kissed $him on both cheeks]. "[it is worth more than gold|nothing in the shop
        is so beautiful]," she said. [and you could see that she meant it.|]"""
    )


@plot
def star(w: World) -> str:
    """A star has fallen down and must go home."""
    way = w.pick(
        (
            "They threw it up with a big swing",
            "They tied it to a kite and let out all the string",
            "They asked the wild geese to carry it",
            "They climbed the highest hill and held it up to the wind",
            "They put it in a basket under a balloon",
        )
    )
    w.set(way=way, where=w.pick(("in the garden", "in the hay", "in a puddle", "on the roof", "in the tall grass")))
    return (
        w.begin(("evening",), ("warm", "cold", "windy"))
        + PARAGRAPH
        + """
        $night something bright fell from the sky. $h ran out to look. There, $where, lay a [tiny|little] star. It was [cold|no bigger
        than a plum], and it was crying. "[I fell down|I leaned out too far]," said the star. "[I want to go home|now there is a hole in
        the sky]."

        $h [picked it up|dried its tears] and took it to $fi. "[a real star|a star, a real star]!" said $f. [they gave it some milk, but
        stars do not drink milk.|they put it in a lamp, and the whole house shone.|] "[you can stay with us|we could keep it]," said $f.
        But the star grew dim. "[it misses its mother|it belongs up there]," said $h.

        So they made a plan. $way, and up it went, higher and higher. "[thank you|good night]," it called, very far away. Now, when $h
        looks up at night, one star [winks|shines a little brighter]. And $h [winks|waves] back."""
    )


@plot
def snowman(w: World) -> str:
    """A snowman, for whom warm kindness is no kindness."""
    w.set(
        nose=w.pick(("a carrot", "a pine cone", "a red pepper")),
        hat=w.pick(("an old pot", "a straw hat", "$his father's hat", "a bucket")),
    )
    return (
        w.begin(("morning", "afternoon"), ("snowy", "snowy", "cold"))
        + PARAGRAPH
        + """
        $t the whole land was white. $h and $fi built a snowman. They gave him $nose for a nose and $hat for a hat. "[hello|what a fine
        day]," said the snowman. "[you can talk|a snowman who talks]!" cried $h. "[of course|only to friends]," said the snowman.

        They played all day. In the evening, $h said, "[You must be cold out here|Come inside to the fire]." "[for me, cold is warm|if I
        came in, I would be soup]," he said. "[just wave at me from the window|but it is nice of you to ask]."

        Then [the sun grew stronger|spring came], and the snowman grew [smaller and smaller|thin]. "[do not be sad|I am not gone]," he
        said. "[I will be the stream and the rain|I will be the brook, and the clouds]. Look for me." And then there was only $hat in
        the grass. But when the first snow fell [again|the next year], a voice said, "[hello, $h|did you miss me]?"
    """
    )


@plot
def borrowed(w: World) -> str:
    """A borrowed thing is kept too long, and given back with something more."""
    w.set(
        thing=w.pick(("ladder", "big kettle", "wheelbarrow", "umbrella", "fishing rod", "lantern", "book about birds")),
        plus=w.pick(("a jar of jam", "a fresh cake", "a bunch of flowers", "a basket of eggs", "a bag of nuts")),
    )
    return (
        w.begin(friend=True)
        + PARAGRAPH
        + """
        $t $h borrowed a $thing from $fi. "[I will bring it back tomorrow|only for a day]," said $h. But tomorrow came and went, and
        [$he forgot|the $thing stood in a corner]. A [week|month] went by.

        [one day|one $sky day], $h saw $f [through the window|from far away]. $f [was working hard without the $thing|needed the $thing
        and did not have it]. $h [felt hot all over|turned red]. "[I still have it|I have been a bad friend]," $he said. $he wanted to
        [hide under the bed|wait for the dark and put it at the door]. But that [was not right|would not do].

        So $h [cleaned|polished] the $thing until it shone, and put $plus with it. $he knocked. "[I am very, very late|I am sorry. I
        forgot it]," $he said. $f looked at the $thing, and at the gift, and [smiled|burst out laughing]. "[for that, you may forget it
        again|I thought it had walked away]," said $f. "[come in and have some|stay for tea]."
    """
    )


@plot
def market(w: World) -> str:
    """A chain of trades that ends well."""
    a, b, c = w.pick(
        (
            ("an egg", "a ribbon", "a lost puppy's collar"),
            ("a feather", "a pen", "an old map"),
            ("a button", "a loaf of bread", "a kitten nobody wanted"),
            ("a turnip", "a tin cup", "a fiddle with one string"),
            ("a shell", "a candle", "a box of seeds"),
            ("a blue stone", "a warm hat", "a clock that ran backward"),
        )
    )
    w.set(one=a, two=b, three=c, thetwo="the " + b.split(" ", 1)[1])
    return (
        w.begin(("morning",), ("sunny", "windy", "cold", "warm"))
        + PARAGRAPH
        + """
        $t $h went to the market to sell $one. "[I need that|just what I am looking for]," said $elder. "[I have no money|my purse is
        empty], but I can give you $two." $h [agreed|did not mind], and they shook hands.

        A little later, $he met a [sad|tired|worried] $other. "[how I would love to have that|that is just what I need]," said the
        $other, and looked at $thetwo. "[all I have is|I can only give you] $three." It was a bad trade. But the $other [looked so
        hopeful|needed it so much] that $h said yes.

        At home, $fi laughed. "[what will you do with $three|all that way, for $three]?" $fhe asked. "[I made two people happy today|I
        met two new friends]," said $h. "[that is a good day|I think I got the best of it]." "[next time, take me with you|you are
        richer than I thought]," said $f."""
    )


@plot
def tallest(w: World) -> str:
    """A boast is answered by something small."""
    boast, task, small = w.pick(
        (
            ("strong", "get a fish bone out of the cat's throat", "with two thin fingers"),
            ("tall", "get the ball out from under the shed", "by crawling in"),
            ("loud", "call the deer back without scaring it", "with a whisper"),
            ("fast", "carry an egg across the room without breaking it", "by going very slowly"),
            ("big", "bring back the key from the mouse hole", "by asking the mouse"),
        )
    )
    w.set(boast=boast, task=task, how=small)
    return (
        w.begin(may_be_timed=False)
        + """
        $fi was [very|so] $boast, and [$fhe told everyone about it|everyone had to hear about it, all day long]. "[nobody is as $boast
        as I am|I am the most $boast of all]," said $f. "[what can you do, $h|and you, $h]?" $h [did not know what to say|only
        shrugged].

        $t $elder came running. "[help|please help]!" $ehe called. "Somebody has to $task." "[easy|let me through]," said $f. $fhe tried
        once. $fhe tried twice. "[that cannot be done|it is not possible]," said $f.

        "May I try?" asked $h. And [quietly|carefully], $how, $he did it. Everyone [stared|clapped]. "[you did it|that was wonderful]!"
        said $elder. $f looked at $fhis feet. "[it is good to be $boast|I can be $boast]," said $f, "[but it is not good for
        everything|and you can be all the rest]." "[together we can do anything|we make a good team]," said $h."""
    )


def story(rng: random.Random, most_chars: int = 745) -> str:
    """One story of at most most_chars characters: paragraphs separated by single newlines. Every plot is as likely as every other."""
    chosen = rng.choice(PLOTS)
    while True:
        world = World(rng)
        template = chosen(world)
        if chosen.__name__ not in ENDED:
            template += " " + rng.choice(ENDINGS)
        text = world.render(template)
        if len(text) <= most_chars:
            return text


def stories(count: int, seed_: int) -> list[str]:
    """`count` distinct stories, in order, for one seed."""
    rng = random.Random(seed_)
    seen: dict[str, None] = {}
    while len(seen) < count:
        seen.setdefault(story(rng))
    return list(seen)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Write the story corpus of the demo model.")
    parser.add_argument("--count", type=int, default=12000, help="number of distinct stories (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generator (default %(default)s)")
    parser.add_argument("--out", type=Path, help="file to write; standard output if absent")
    args = parser.parse_args()
    text = "".join(s + "\n\n" for s in stories(args.count, args.seed))
    if args.out:
        args.out.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
