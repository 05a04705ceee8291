//! Character encodings by the names that IANA registers for them (`textencodebase64`, `textdecodebase64`)

/// How characters become bytes.
#[derive(Clone, Copy)]
pub(super) enum Encoding {
    Utf8,
    /// A mark of the byte order comes first, and is read; without one the high byte comes first.
    Utf16Marked,
    Utf16Little,
    Utf16Big,
    Ascii,
    /// Bytes are the numbers of characters.
    Latin1,
    /// A Windows code page with control characters at 128 to 159, as the ISO encoding that it was made from has them.
    Controls(&'static encoding_rs::Encoding),
    Table(&'static encoding_rs::Encoding),
}

impl Encoding {
    /// By a name or an alias of it; capitals or not is no matter.
    pub(super) fn named(name: &str) -> Option<Encoding> {
        let name = name.to_ascii_lowercase();
        let own = OWN.iter().find(|(names, _)| names.split(' ').any(|n| n == name)).map(|(_, encoding)| *encoding);
        own.or_else(|| {
            let (_, encoding) = TABLES.iter().find(|(names, _)| names.split(' ').any(|n| n == name))?;
            Some(Encoding::Table(encoding))
        })
    }

    /// None if a character of the text is not in the encoding.
    pub(super) fn encode(self, text: &str) -> Option<Vec<u8>> {
        let big = || text.encode_utf16().flat_map(u16::to_be_bytes);
        let narrow = |limit: u32| text.chars().map(|c| u8::try_from(u32::from(c)).ok().filter(|b| u32::from(*b) < limit)).collect();
        match self {
            Encoding::Utf8 => Some(text.bytes().collect()),
            Encoding::Utf16Little => Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Encoding::Utf16Big => Some(big().collect()),
            Encoding::Utf16Marked => Some([0xfe, 0xff].into_iter().chain(big()).collect()),
            Encoding::Ascii => narrow(0x80),
            Encoding::Latin1 => narrow(0x100),
            Encoding::Controls(table) => text.chars().map(|c| if is_control(c) { Some(c as u8) } else { high(table, c) }).collect(),
            Encoding::Table(table) => {
                let (bytes, _, misfits) = table.encode(text);
                (!misfits && !has_controls(table, text)).then(|| bytes.into_owned())
            }
        }
    }

    /// None if bytes stand for nothing.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<String> {
        let text = match self {
            Encoding::Utf8 => String::from_utf8(bytes.to_vec()).ok()?,
            Encoding::Utf16Little => wide(bytes, u16::from_le_bytes)?,
            Encoding::Utf16Big => wide(bytes, u16::from_be_bytes)?,
            Encoding::Utf16Marked => match bytes {
                [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes)?,
                [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes)?,
                _ => wide(bytes, u16::from_be_bytes)?,
            },
            Encoding::Ascii => String::from_utf8(bytes.to_vec()).ok().filter(|text| text.is_ascii())?,
            Encoding::Latin1 => bytes.iter().map(|b| char::from(*b)).collect(),
            Encoding::Controls(table) => {
                let one = |b: &u8| match char::from(*b) {
                    c if is_control(c) => Some(c.to_string()),
                    _ => table.decode_without_bom_handling_and_without_replacement(&[*b]).map(|text| text.into_owned()),
                };
                bytes.iter().map(one).collect::<Option<String>>()?
            }
            Encoding::Table(table) => {
                let text = table.decode_without_bom_handling_and_without_replacement(bytes)?.into_owned();
                Some(text).filter(|text| !has_controls(table, text))?
            }
        };
        // What stands for a character that could not be read, in a text that was spoilt before, is none here either.
        (!text.contains('\u{fffd}')).then_some(text)
    }
}

fn is_control(c: char) -> bool {
    ('\u{80}'..='\u{9f}').contains(&c)
}

/// In encodings of single bytes those from 128 on that are no character stand for nothing, and for no control character either.
fn has_controls(table: &'static encoding_rs::Encoding, text: &str) -> bool {
    table.is_single_byte() && text.chars().any(is_control)
}

/// The byte of a character that is not at 128 to 159.
fn high(table: &'static encoding_rs::Encoding, c: char) -> Option<u8> {
    let text = c.to_string();
    let (bytes, _, misfits) = table.encode(&text);
    match *bytes {
        [byte] if !misfits && !is_control(char::from(byte)) => Some(byte),
        _ => None,
    }
}

fn wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, []) = bytes.as_chunks::<2>() else { return None };
    String::from_utf16(&pairs.iter().map(|pair| unit(*pair)).collect::<Vec<_>>()).ok()
}

/// Names in small letters, as in IANA's registry of character sets.
const OWN: [(&str, Encoding); 7] = [
    ("utf-8 csutf8", Encoding::Utf8),
    ("utf-16 csutf16", Encoding::Utf16Marked),
    ("utf-16le csutf16le", Encoding::Utf16Little),
    ("utf-16be csutf16be", Encoding::Utf16Big),
    ("us-ascii iso-ir-6 ansi_x3.4-1968 ansi_x3.4-1986 iso_646.irv:1991 iso646-us us ibm367 cp367 csascii", Encoding::Ascii),
    ("iso-8859-1 iso_8859-1:1987 iso-ir-100 iso_8859-1 latin1 l1 ibm819 cp819 csisolatin1", Encoding::Latin1),
    ("iso-8859-9 iso_8859-9:1989 iso-ir-148 iso_8859-9 latin5 l5 csisolatin5", Encoding::Controls(encoding_rs::WINDOWS_1254)),
];

const TABLES: [(&str, &encoding_rs::Encoding); 35] = [
    ("iso-8859-2 iso_8859-2:1987 iso-ir-101 iso_8859-2 latin2 l2 csisolatin2", encoding_rs::ISO_8859_2),
    ("iso-8859-3 iso_8859-3:1988 iso-ir-109 iso_8859-3 latin3 l3 csisolatin3", encoding_rs::ISO_8859_3),
    ("iso-8859-4 iso_8859-4:1988 iso-ir-110 iso_8859-4 latin4 l4 csisolatin4", encoding_rs::ISO_8859_4),
    ("iso-8859-5 iso_8859-5:1988 iso-ir-144 iso_8859-5 cyrillic csisolatincyrillic", encoding_rs::ISO_8859_5),
    ("iso-8859-6 iso_8859-6:1987 iso-ir-127 iso_8859-6 ecma-114 asmo-708 arabic csisolatinarabic", encoding_rs::ISO_8859_6),
    ("iso-8859-6-e iso_8859-6-e csiso88596e iso-8859-6-i iso_8859-6-i csiso88596i", encoding_rs::ISO_8859_6),
    ("iso-8859-7 iso_8859-7:1987 iso-ir-126 iso_8859-7 elot_928 ecma-118 greek greek8 csisolatingreek", encoding_rs::ISO_8859_7),
    ("iso-8859-8 iso_8859-8:1988 iso-ir-138 iso_8859-8 hebrew csisolatinhebrew", encoding_rs::ISO_8859_8),
    ("iso-8859-8-e iso_8859-8-e csiso88598e iso-8859-8-i iso_8859-8-i csiso88598i", encoding_rs::ISO_8859_8),
    ("iso-8859-10 iso-ir-157 l6 iso_8859-10:1992 csisolatin6 latin6", encoding_rs::ISO_8859_10),
    ("iso-8859-13 csiso885913", encoding_rs::ISO_8859_13),
    ("iso-8859-14 iso-ir-199 iso_8859-14:1998 iso_8859-14 latin8 iso-celtic l8 csiso885914", encoding_rs::ISO_8859_14),
    ("iso-8859-15 iso_8859-15 latin-9 csiso885915", encoding_rs::ISO_8859_15),
    ("iso-8859-16 iso-ir-226 iso_8859-16:2001 iso_8859-16 latin10 l10 csiso885916", encoding_rs::ISO_8859_16),
    ("koi8-r cskoi8r", encoding_rs::KOI8_R),
    ("koi8-u cskoi8u", encoding_rs::KOI8_U),
    ("macintosh mac csmacintosh", encoding_rs::MACINTOSH),
    ("windows-874 cswindows874", encoding_rs::WINDOWS_874),
    ("windows-1250 cswindows1250", encoding_rs::WINDOWS_1250),
    ("windows-1251 cswindows1251", encoding_rs::WINDOWS_1251),
    ("windows-1252 cswindows1252", encoding_rs::WINDOWS_1252),
    ("windows-1253 cswindows1253", encoding_rs::WINDOWS_1253),
    ("windows-1254 cswindows1254", encoding_rs::WINDOWS_1254),
    ("windows-1255 cswindows1255", encoding_rs::WINDOWS_1255),
    ("windows-1256 cswindows1256", encoding_rs::WINDOWS_1256),
    ("windows-1257 cswindows1257", encoding_rs::WINDOWS_1257),
    ("windows-1258 cswindows1258", encoding_rs::WINDOWS_1258),
    ("ibm866 cp866 866 csibm866", encoding_rs::IBM866),
    ("shift_jis ms_kanji csshiftjis", encoding_rs::SHIFT_JIS),
    ("euc-jp extended_unix_code_packed_format_for_japanese cseucpkdfmtjapanese", encoding_rs::EUC_JP),
    ("iso-2022-jp csiso2022jp", encoding_rs::ISO_2022_JP),
    ("euc-kr cseuckr", encoding_rs::EUC_KR),
    ("gbk cp936 ms936 windows-936 csgbk", encoding_rs::GBK),
    ("gb18030 csgb18030", encoding_rs::GB18030),
    ("big5 csbig5", encoding_rs::BIG5),
];
