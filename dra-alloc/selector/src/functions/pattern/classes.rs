//! Classes of characters that a pattern can name: Unicode categories and scripts, and the sizes of their compiled forms.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Largest size in bytes of the compiled form of a class, also negated and without case, with the names that have it.
/// Names are in lower case, without spaces, underscores and hyphens.
#[rustfmt::skip]
const CLASSES: [(usize, &str); 11] = [
    (53_248, "assigned c cn other unassigned"),
    (44_032, "l letter"),
    (38_912, "lo otherletter"),
    (32_768, "combiningmark ll lowercaseletter lu m mark mn nonspacingmark uppercaseletter"),
    (24_576, "n number otherpunctuation p po punct punctuation s symbol"),
    (18_432, "common decimalnumber digit mc nd othersymbol so spacingmark zyyy"),
    (12_288, "casedletter lc lm modifierletter no othernumber"),
    (7_680, "closepunctuation inherited mathsymbol openpunctuation pe ps qaai sm zinh"),
    (5_376, "arab arabic cf currencysymbol format greek grek latin latn modifiersymbol sc sk"),
    (4_096, "\
        cyrillic cyrl dashpunctuation ethi ethiopic han hang hangul hani kana katakana letternumber nl pd"),
    (2_560, "\
        adlam adlm aghb ahom anatolianhieroglyphs armenian armi armn ascii avestan avst bali balinese bamu bamum \
        bass bassavah batak batk beng bengali bhaiksuki bhks bopo bopomofo brah brahmi brai braille bugi buginese \
        buhd buhid cakm canadianaboriginal cans cari carian caucasianalbanian cc chakma cham cher cherokee \
        chorasmian chrs cntrl co connectorpunctuation control copt coptic cpmn cprt cuneiform cypriot cyprominoan \
        deseret deva devanagari diak divesakuru dogr dogra dsrt dupl duployan egyp egyptianhieroglyphs elba elbasan \
        elym elymaic enclosingmark finalpunctuation gara garay geor georgian glag glagolitic gong gonm goth gothic \
        gran grantha gujarati gujr gukh gunjalagondi gurmukhi guru gurungkhema hanifirohingya hano hanunoo hatr \
        hatran hebr hebrew hira hiragana hluw hmng hmnp hung imperialaramaic initialpunctuation inscriptionalpahlavi \
        inscriptionalparthian ital java javanese kaithi kali kannada kawi kayahli khar kharoshthi khitansmallscript \
        khmer khmr khoj khojki khudawadi kiratrai kits knda krai kthi lana lao laoo lepc lepcha limb limbu lina linb \
        lineara linearb lineseparator lisu lt lyci lycian lydi lydian mahajani mahj maka makasar malayalam mand \
        mandaic mani manichaean marc marchen masaramgondi me medefaidrin medf meeteimayek mend mendekikakui merc \
        mero meroiticcursive meroitichieroglyphs miao mlym modi mong mongolian mro mroo mtei mult multani myanmar \
        mymr nabataean nagm nagmundari nand nandinagari narb nbat newa newtailue nko nkoo nshu nushu \
        nyiakengpuachuehmong ogam ogham olchiki olck oldhungarian olditalic oldnortharabian oldpermic oldpersian \
        oldsogdian oldsoutharabian oldturkic olduyghur olonal onao oriya orkh orya osage osge osma osmanya ougr \
        pahawhhmong palm palmyrene paragraphseparator pauc paucinhau pc perm pf phag phagspa phli phlp phnx \
        phoenician pi plrd privateuse prti psalterpahlavi qaac rejang rjng rohg runic runr samaritan samr sarb saur \
        saurashtra separator sgnw sharada shavian shaw shrd sidd siddham signwriting sind sinh sinhala sogd sogdian \
        sogo sora sorasompeng soyo soyombo spaceseparator sund sundanese sunu sunuwar sylo sylotinagri syrc syriac \
        tagalog tagb tagbanwa taile taitham taiviet takr takri tale talu tamil taml tang tangsa tangut tavt telu \
        telugu tfng tglg thaa thaana thai tibetan tibt tifinagh tirh tirhuta titlecaseletter tnsa todhri todr toto \
        tulutigalari tutg ugar ugaritic vai vaii vith vithkuqi wancho wara warangciti wcho xpeo xsux yezi yezidi yi \
        yiii z zanabazarsquare zanb zl zp zs"),
];

/// Class of all characters, whose size is that of a small one.
const ANY: (&str, Class) = ("any", Class { size: 2_560, lookups: 0x11_0000 });

/// Sizes of a class that has a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    /// Largest size of its compiled form, in bytes.
    pub(super) size: usize,
    /// Size that takes as long to compile as the look-up of the other spellings of its characters.
    pub(super) lookups: usize,
}

static BY_NAME: LazyLock<BTreeMap<&str, Class>> = LazyLock::new(|| {
    let row = |(size, names): &(usize, &'static str)| {
        let class = Class { size: *size, lookups: *size };
        names.split(' ').map(move |name| (name, class))
    };
    CLASSES.iter().flat_map(row).chain([ANY]).collect()
});

/// Returns the class of a name; `None` if there is none.
pub(super) fn named(name: &str) -> Option<Class> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" _-".contains(&byte)) {
        return None;
    }
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    BY_NAME.get(plain.to_ascii_lowercase().as_str()).copied()
}

/// Returns all names of classes.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BY_NAME.keys().copied()
}
