"""Word lists of the demo corpus: everything the small model can name.

Lists that must generalise (names, towns, pets, foods ...) are split. Items with held(index) are only in the
questions for score.py and not in training, except those words of SPELL that other texts contain
(corpus.spell_split). Facts are closed sets without held-out items.
"""

HELD_EVERY = 9  # one of nine items is held out


def held(index):
    return index % HELD_EVERY == HELD_EVERY - 1


def split(items):
    """-> (training items, held-out items)"""
    items = list(dict.fromkeys(items))
    return ([w for i, w in enumerate(items) if not held(i)],
            [w for i, w in enumerate(items) if held(i)])


def pairs(text):
    """-> {a: b} of "a:b ..." """
    return dict(pair.split(":") for pair in text.split())


NAMES = """Anna Ben Carla David Emma Felix Grace Henry Ida Jack Karen Leo Maria Noah Olga Paul Quinn Rosa Sam Tina
Ugo Vera Will Xenia Yara Zoe Adam Bella Chris Dora Eric Fiona George Hanna Ian Julia Kevin Laura Max Nina Oscar Petra
Robert Sara Tom Ursula Victor Wendy Alan Betty Carl Diana Edward Eva Frank Gina Harry Irene James Kate Lucas Mona
Nathan Olivia Peter Rachel Simon Theresa Vincent Alice Bruno Celia Daniel Ellen Fred Gloria Hugo Ines Jonas Klara
Liam Martha Nico Otto Paula Ralph Sophie Theo Valerie Walter Amir Aisha Bilal Chen Deepa Emre Fatima Goran Hiro Indira
Jamal Kenji Leila Mei Naveen Omar Priya Ravi Sanjay Tariq Usha Wei Yusuf Zara Ahmed Ingrid Lars Sven Astrid Bjorn
Freya Nils Greta Anton Boris Dmitri Elena Igor Katya Marco Luca Giulia Pablo Diego Carmen Lucia Mateo Sofia Andre
Claire Luc Margot Pierre Chloe Emil Oskar Hana Pavel Milan Jana Tomas Zofia Kasia Marek Agnes Bence Dario Nora Silas
Miles Ruby Hazel Ivy Jasper Logan Mason Owen Piper Reed Stella Tessa Wyatt Abel Cora Dean Elsa Finn Gwen Heidi Iris
Joel Kurt Lena Mara Neil Opal Perry Rita Seth Toby Vivian Wade Alma Boyd Clara Drew Edith Floyd Gail Homer Isla
Jude Kira Lloyd Mabel Ned Otis Pearl Roy Sybil Trent Una Vince Wilma""".split()

TOWNS = """Paris London Rome Berlin Madrid Vienna Oslo Lisbon Dublin Athens Prague Warsaw Budapest Helsinki Stockholm
Copenhagen Brussels Amsterdam Zurich Geneva Munich Hamburg Cologne Milan Turin Naples Florence Venice Lyon Nice
Bordeaux Seville Valencia Porto Bergen Malmo Tampere Riga Vilnius Tallinn Krakow Gdansk Brno Graz Salzburg Basel Bern
Leeds Bristol York Oxford Cambridge Glasgow Cardiff Belfast Cork Galway Boston Chicago Denver Seattle Portland Dallas
Austin Houston Miami Atlanta Phoenix Detroit Toronto Montreal Calgary Vancouver Ottawa Sydney Melbourne Perth
Auckland Wellington Tokyo Osaka Kyoto Seoul Busan Beijing Shanghai Delhi Mumbai Chennai Dhaka Bangkok Hanoi Jakarta
Manila Cairo Tunis Rabat Lagos Accra Nairobi Dakar Lima Quito Bogota Santiago Havana Caracas Montevideo Lusaka Harare
Windhoek Kampala Reykjavik Bologna Verona Genoa Trieste Utrecht Leiden Ghent Bruges Antwerp Lille Nantes Rennes
Dresden Leipzig Bremen Bonn Kiel Linz Split Zadar Varna Sofia Cluj Izmir Ankara Tbilisi Baku Bath Dover Exeter""".split()

COLOURS = "red blue green yellow orange purple pink brown black white grey gold silver violet turquoise".split()

FOODS = """pizza pasta rice bread soup salad cheese fish chicken curry sushi noodles pancakes waffles chocolate cake
cookies apples pears plums cherries grapes melons bananas oranges peaches berries honey yogurt tofu lentils beans
potatoes tomatoes carrots spinach mushrooms olives onions peas corn pumpkin eggs toast porridge dumplings tacos
burritos stew pie pudding popcorn ice-cream lasagna ravioli risotto paella falafel hummus kebab omelette
shrimp steak bacon sausages nachos gnocchi polenta couscous granola muesli pretzels brownies custard sorbet mussels
crab celery radishes""".split()

ANIMALS = """cat dog horse cow pig sheep goat rabbit hamster mouse parrot canary duck goose hen owl eagle fox wolf bear
deer lion tiger elephant giraffe zebra monkey dolphin whale shark turtle frog snake lizard penguin otter badger
hedgehog squirrel camel donkey koala panda kangaroo
gorilla leopard cheetah walrus pelican flamingo ostrich vulture moose bison beaver ferret jaguar lobster octopus
starfish lemur sloth""".split()

HOBBIES = """reading swimming cycling painting dancing singing cooking baking gardening fishing hiking running climbing
skiing sailing chess photography knitting drawing writing camping rowing juggling yoga pottery archery skating
surfing bowling fencing boxing quilting origami karate judo tennis golf darts whittling stargazing karaoke sudoku
birdwatching calligraphy""".split()

JOBS = """teacher doctor nurse baker farmer driver pilot painter writer singer dancer cook lawyer engineer plumber
carpenter gardener builder tailor barber dentist librarian mechanic programmer scientist student waiter clerk
fisherman florist potter printer sailor
judge butcher welder roofer miner porter editor actor
surgeon chemist soldier trader glazier grocer mason tutor broker""".split()

PET_NAMES = """Rex Fluffy Luna Milo Coco Daisy Rocky Simba Nala Oreo Pepper Ginger Shadow Bruno Misty Tiger Snowy
Buddy Lucky Patch Biscuit Cookie Pumpkin Whiskers Socks Mittens Smoky Ziggy Pippin Hobbes Juno Koko Mango Nacho
Olive Peanut Quincy Rusty Sunny Tofu Waffles Yoyo Zippy Bandit Clover Dusty Fudge Gizmo""".split()

SEASONS = "spring summer autumn winter".split()
DRINKS = "tea coffee water milk juice cocoa lemonade cider".split()

CAPITALS = pairs("""France:Paris Germany:Berlin Italy:Rome Spain:Madrid Portugal:Lisbon
Austria:Vienna Norway:Oslo Sweden:Stockholm Denmark:Copenhagen Finland:Helsinki Iceland:Reykjavik Ireland:Dublin
Belgium:Brussels Greece:Athens Poland:Warsaw Hungary:Budapest Switzerland:Bern Romania:Bucharest Bulgaria:Sofia
Croatia:Zagreb Serbia:Belgrade Slovenia:Ljubljana Slovakia:Bratislava Estonia:Tallinn Latvia:Riga Lithuania:Vilnius
Ukraine:Kyiv Russia:Moscow Turkey:Ankara Egypt:Cairo Morocco:Rabat Tunisia:Tunis Kenya:Nairobi Ghana:Accra
Nigeria:Abuja Senegal:Dakar Japan:Tokyo China:Beijing India:Delhi Thailand:Bangkok Vietnam:Hanoi Indonesia:Jakarta
Canada:Ottawa Mexico:Mexico_City Cuba:Havana Peru:Lima Chile:Santiago Ecuador:Quito Colombia:Bogota Venezuela:Caracas
Argentina:Buenos_Aires Brazil:Brasilia Uruguay:Montevideo Australia:Canberra Iran:Tehran Iraq:Baghdad
Jordan:Amman""")
CAPITALS = {k: v.replace("_", " ") for k, v in CAPITALS.items()}

# Places that CAPITALS does not have. Asked for the capital of one, the model declines.
OTHER_PLACES = """Albania|Algeria|Angola|Armenia|Azerbaijan|Bangladesh|Belarus|Bhutan|Bolivia|Bosnia|Botswana|
Burma|Cameroon|Costa Rica|Cyprus|Fiji|Gabon|Georgia|Guinea|Guyana|Haiti|
Honduras|Israel|Jamaica|Kazakhstan|Kuwait|Kyrgyzstan|Laos|Liberia|Libya|Luxembourg|Madagascar|Malawi|Malaysia|
Mali|Malta|Moldova|Mongolia|Montenegro|Mozambique|Namibia|Nepal|New Zealand|Nicaragua|Niger|North Korea|Oman|
Pakistan|Qatar|Rwanda|Saudi Arabia|Scotland|Singapore|Somalia|South Africa|South Korea|Sri Lanka|Sudan|
Syria|Taiwan|Tanzania|Texas|Togo|Uganda|Uzbekistan|Wales|Yemen|Zambia|California|England|the Philippines|
the Netherlands|the USA|the United States|the UK|Europe|Africa|Atlantis|the moon""".replace("\n", "").split("|")

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = """January February March April May June July August September October November December""".split()
MONTH_DAYS = dict(zip(MONTHS, "31 28 31 30 31 30 31 31 30 31 30 31".split()))
PLANETS = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()

OPPOSITES = pairs("""hot:cold big:small tall:short fast:slow old:young new:old happy:sad
light:dark day:night up:down left:right open:closed full:empty hard:soft wet:dry rich:poor strong:weak high:low
early:late good:bad long:short near:far heavy:light clean:dirty loud:quiet black:white true:false first:last
in:out on:off over:under before:after thick:thin wide:narrow deep:shallow brave:afraid sweet:bitter rough:smooth
cheap:expensive easy:difficult awake:asleep sharp:blunt begin:end win:lose buy:sell push:pull love:hate
""")

PLURALS = pairs("""cat:cats dog:dogs mouse:mice child:children foot:feet tooth:teeth
goose:geese man:men woman:women sheep:sheep fish:fish leaf:leaves knife:knives wolf:wolves box:boxes fox:foxes
bus:buses glass:glasses city:cities baby:babies party:parties lady:ladies book:books tree:trees house:houses
car:cars key:keys day:days boy:boys potato:potatoes tomato:tomatoes hero:heroes person:people ox:oxen wife:wives
life:lives shelf:shelves half:halves church:churches dish:dishes watch:watches bird:birds flower:flowers
""")

THING_COLOURS = pairs("""grass:green snow:white sky:blue sun:yellow coal:black blood:red
banana:yellow lemon:yellow tomato:red carrot:orange milk:white chocolate:brown emerald:green ruby:red raven:black
swan:white pumpkin:orange frog:green elephant:grey flamingo:pink""")

# Words to repeat, spell, reverse and count. They are short to keep the answers short.
SPELL = """apple bread chair table house mouse plant stone water cloud river field light night dream green brown black
white clock knife spoon plate glass cup bowl desk lamp door wall roof floor road street bridge train plane ship boat
wheel engine metal wood paper book page word letter song music dance story poem paint brush colour shape line circle
square heart hand foot arm leg head eye ear nose mouth tooth hair skin bone blood brain voice smile laugh tear sleep
wake walk run jump swim climb throw catch kick push pull lift drop build break mend wash cook bake boil fry eat drink
taste smell touch hear see look watch read write draw sing play work rest learn teach think know guess hope wish love
fear anger joy peace war law king queen prince castle tower garden flower tree leaf root seed fruit grape lemon melon
peach pear plum berry corn wheat rice bean pea onion carrot potato salt sugar honey milk butter cheese egg meat soup
cat dog cow pig hen duck goose sheep goat horse lion tiger bear wolf fox deer rabbit frog snake bird eagle owl crow
fish shark whale crab snail worm bee ant fly moth spider summer winter spring autumn morning noon evening today
monday friday winter storm rain snow wind frost fog sun moon star sky earth sea lake pond hill rock sand mud dust
fire smoke ash coal oil gas gold silver iron copper coin purse shop market price gift card game ball doll kite drum
flute piano guitar violin school class lesson chalk pencil ruler map flag coat shirt shoe sock hat glove scarf belt
ring chain watch wallet key lock box bag jar can tin pot pan stove oven soap towel sponge broom bucket rope nail
hammer saw drill screw ladder brick cement tile window curtain carpet pillow blanket mirror candle basket bottle
ticket station airport harbour village city country island desert forest jungle valley canyon cave beach coast
ocean planet rocket comet orbit laser robot magnet motor cable button switch screen mouse keyboard printer camera
phone radio letter stamp parcel orange purple yellow silver marble velvet cotton leather rubber plastic timber
bamboo walnut almond raisin ginger pepper garlic turnip radish celery pickle mustard biscuit muffin waffle toffee
puzzle riddle magic wizard dragon giant fairy pirate knight sword shield arrow helmet saddle stable donkey monkey
turkey pigeon parrot falcon lizard turtle beetle dolphin otter badger weasel ferret hamster kitten puppy pony lamb
acorn anchor apron attic autumn axe badge bagel barn basin bench berth blade blanket blouse bonnet boulder bracket
branch bronze bubble bundle bunker cactus canvas cannon carton cavern cellar chapel cherub cider circus clamp cliff
cloak clover cobweb collar copper coral cottage couch cradle crane crater crayon cricket crown crumb crystal cushion
dagger dairy daisy denim diamond ditch dock drawer dress eleven elbow ember engine envelope fabric feather fence
fiddle finger flame flask fleece flint flute fossil fountain funnel gadget gallop gate gravel grove guard hamlet
hanger harness hatch hazel hedge hermit hinge hollow hook hornet hound igloo infant insect ivory jacket jaguar
jersey jewel jigsaw jungle kennel kettle kidney lagoon lantern latch lawn ledge lever lilac linen locket lodge
lumber magnet mantle maple marsh mask meadow medal midnight mint mitten mole moss muscle napkin needle nest nickel
noodle notch nugget nut oar oasis olive orchid otter owner oyster paddle palace panther parade patch peanut pebble
pepper petal picnic pier pigment pillar pilot pinch plank plaster pocket porch potter powder prairie pulley quarry
quill rabbit raft ranch raven razor ribbon ridge ripple rooster rust sailor satin sauce scooter scroll shelf
shovel shutter sickle siren skate slipper sparrow spear sponge squash statue stem straw stream summit swamp swan
syrup tablet tailor tavern temple thorn thread thumb thunder tongue topaz torch trail tray trench tunnel turban
twig urn vault vessel vine violet vulture wagon wand wasp whistle willow wing wrist yacht yarn zipper
""".split()
SPELL = list(dict.fromkeys(SPELL))
