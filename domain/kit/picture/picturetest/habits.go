package picturetest

import (
	"bytes"
	"embed"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io/fs"
	"slices"
	"strings"
)

//go:embed testdata
var testdata embed.FS

// Trailer is a text in every trailer of Habits: it must not survive in a picture for display.
const Trailer = "behind the end"

// Habits returns pictures as cameras, telephones, scanners and galleries write them, by habit: with trailers, further
// pictures, thumbnails and films, in unusual colours and depths. Each must be accepted as evidence.
func Habits() map[string][]byte {
	jpg, thumbnail := JPEG(64, 48), JPEG(8, 8)
	film := []byte("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom" + Trailer)
	// Samsung's trailer: blocks of data, their directory, its length and the last mark.
	samsung := []byte("\x00\x00\x01\x0a\x0e\x00\x00\x00Image_UTC_Data1700000000000" + Trailer +
		"SEFH\x6a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x0a\x23\x00\x00\x00\x23\x00\x00\x00\x18\x00\x00\x00SEFT")
	index := append([]byte("MPF\x00MM\x00*\x00\x00\x00\x08"), make([]byte, 60)...)
	xmp := []byte("http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:Description " +
		"xmlns:hdrgm='http://ns.adobe.com/hdr-gain-map/1.0/' hdrgm:Version='1.0'/></x:xmpmeta>")
	exif := slices.Concat([]byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00"), thumbnail)
	all := map[string][]byte{
		"Samsung's trailer":             slices.Concat(jpg, samsung),
		"zeros to a block of the disk":  append(slices.Clone(jpg), make([]byte, 4096)...),
		"line break at the end":         append(slices.Clone(jpg), '\r', '\n'),
		"comment of a gallery":          slices.Concat(jpg, []byte("<!-- "+Trailer+" -->")),
		"several pictures (MPF)":        slices.Concat(segment(jpg, 0xe2, index), thumbnail, thumbnail),
		"several pictures and trailer":  slices.Concat(segment(jpg, 0xe2, index), thumbnail, samsung),
		"several pictures, padded":      slices.Concat(jpg, make([]byte, 512), thumbnail),
		"gain map (Ultra HDR)":          slices.Concat(segment(segment(jpg, 0xe2, index), 0xe1, xmp), thumbnail),
		"film behind it (Motion Photo)": slices.Concat(segment(jpg, 0xe1, xmp), film),
		"archive behind it":             append(slices.Clone(jpg), docx()...),
		"thumbnail in EXIF":             segment(jpg, 0xe1, exif),
		"orientation in EXIF":           WithEXIF(jpg, 6),
		"profile in several segments":   segment(segment(jpg, 0xe2, icc(2)), 0xe2, icc(1)),
		"Photoshop's resources":         segment(jpg, 0xed, []byte("Photoshop 3.0\x008BIM\x04\x04\x00\x00\x00\x00\x00\x00")),
		"no JFIF and a comment":         segment(jpg, 0xfe, []byte("a comment")),
		"fill bytes before a marker":    slices.Concat(jpg[:2], []byte("\xff\xff"), jpg[2:]),
		"bytes between segments":        slices.Concat(segment(jpg, 0xfe, []byte("x"))[:7], make([]byte, 9), jpg[2:]),
		"no marker of the end":          jpg[:len(jpg)-2],
		"half a marker of the end":      jpg[:len(jpg)-1],
		"grey JPEG":                     greyJPEG(),
		"APNG": slices.Concat(PNG(24, 16)[:33], chunk("acTL", []byte("\x00\x00\x00\x01\x00\x00\x00\x00")),
			PNG(24, 16)[33:]),
		"profile, EXIF and text in PNG": slices.Concat(PNG(24, 16)[:33], chunk("eXIf", exif[6:14]),
			chunk("tEXt", []byte("Software\x00Scanner")), PNG(24, 16)[33:]),
		"trailer of a PNG":           append(PNG(24, 16), Trailer...),
		"16-bit grey PNG":            greyPNG(),
		"trailer of a GIF":           append(GIF(24, 16), Trailer...),
		"trailer of a WebP":          append(WebP(24, 16), Trailer...),
		"animated WebP with trailer": append(read("animated.webp"), Trailer...),
	}
	entries, err := fs.ReadDir(testdata, "testdata")
	must(err)
	for _, e := range entries {
		all[e.Name()] = read(e.Name())
	}
	return all
}

// PDFs returns documents as scanners, office programs and signers write them. They are not parsed.
func PDFs() map[string][]byte {
	const body = "%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
	return map[string][]byte{
		"plain":            []byte(body),
		"byte order mark":  []byte("\ufeff" + body),
		"blank lines":      []byte("\r\n\r\n" + body),
		"head of a spool":  []byte("\x1b%-12345X@PJL ENTER LANGUAGE=PDF\r\n" + body),
		"head of 1 KiB":    []byte(strings.Repeat("x", 1024) + body),
		"linearised":       []byte("%PDF-1.6\r%\xe2\xe3\xcf\xd3\r\n1 0 obj<</Linearized 1/L 500>>endobj\n%%EOF\n" + body[9:]),
		"signed":           []byte(body + "2 0 obj<</Type/Sig/ByteRange[0 1 2 3]/Contents<00>>>endobj\n%%EOF\n"),
		"bytes at the end": []byte(body + "\x00\x00\x00" + Trailer),
	}
}

// HEIC returns the beginning of a picture of an iPhone.
func HEIC() []byte { return []byte("\x00\x00\x00\x24ftypheic\x00\x00\x00\x00mif1heic") }

func icc(n byte) []byte { return append([]byte("ICC_PROFILE\x00"), n, 2, 1, 2, 3, 4) }

func greyJPEG() []byte {
	m := image.NewGray(image.Rect(0, 0, 24, 16))
	var b bytes.Buffer
	must(jpeg.Encode(&b, m, nil))
	return b.Bytes()
}

func greyPNG() []byte {
	m := image.NewGray16(image.Rect(0, 0, 24, 16))
	m.Set(1, 1, color.Gray16{Y: 0x1234})
	var b bytes.Buffer
	must(png.Encode(&b, m))
	return b.Bytes()
}

func read(name string) []byte {
	b, err := testdata.ReadFile("testdata/" + name)
	must(err)
	return b
}
