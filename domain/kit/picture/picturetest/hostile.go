package picturetest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// Hostile returns files that must be rejected as pictures, by kind of attack.
func Hostile() map[string][]byte {
	good := map[string][]byte{"png": PNG(64, 48), "jpeg": JPEG(64, 48), "gif": GIF(64, 48), "webp": WebP(64, 48)}
	all := map[string][]byte{
		"empty":                       {},
		"one byte":                    {0x89},
		"zeros":                       make([]byte, 1<<10),
		"text":                        []byte("hello"),
		"html":                        []byte("<html><script>alert(1)</script></html>"),
		"svg":                         []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`),
		"svg with declaration":        []byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`),
		"pdf":                         []byte("%PDF-1.7\n%%EOF\n"),
		"program":                     []byte("\x7fELF\x02\x01\x01"),
		"bmp":                         append([]byte("BM"), make([]byte, 100)...),
		"tiff":                        append([]byte("II*\x00\x08\x00\x00\x00"), make([]byte, 100)...),
		"ico":                         append([]byte("\x00\x00\x01\x00\x01\x00"), make([]byte, 100)...),
		"zip bomb as docx":            docx(),
		"png of 65535 pixels a side":  pngOf(65535, 65535, 8, 6, 0, zeros(1000)),
		"png of 2^31-1 pixels a side": pngOf(1<<31-1, 1<<31-1, 8, 6, 0, zeros(1000)),
		"png of no width":             pngOf(0, 100, 8, 6, 0, zeros(1000)),
		"png of no height":            pngOf(100, 0, 8, 6, 0, zeros(1000)),
		"png one row too wide":        pngOf(8193, 1, 8, 0, 0, zeros(8194)),
		"png one pixel too many":      pngOf(8192, 3073, 1, 0, 0, zeros(3073*1025)),
		"png that inflates":           pngOf(4096, 4096, 1, 0, 0, zeros(4096*513)),
		"png of 16 bits a sample":     pngOf(5000, 5000, 16, 6, 0, zeros(5000*40001)),
		"png interlaced":              pngOf(5000, 5000, 8, 6, 1, zeros(30_000_000)),
		"png without data":            pngOf(64, 48, 8, 6, 0, zeros(0)),
		"png with wrong data":         pngOf(64, 48, 8, 6, 0, []byte("this was never compressed")),
		"png whose data ends early":   pngOf(4096, 4096, 8, 6, 0, zeros(4096 * 16385)[:32<<10]), // 64 MiB are decoded
		"png with a chunk of 2^31":    slices.Concat(good["png"][:33], []byte("\x80\x00\x00\x00IDAT")),
		"gif of 65535 pixels a side":  gifOf(65535, 65535),
		"gif of no size":              gifOf(0, 0),
		"gif and script":              []byte("GIF89a/*\x00\x00\x00\x00*/=1;alert(1)//"),
		"gif larger than its screen":  gifFrame(gifOf(8, 8), 8000),
		"jpeg of 65535 pixels a side": sized(good["jpeg"], 65535, 65535),
		"jpeg of no size":             sized(good["jpeg"], 0, 0),
		"jpeg of many pixels":         sized(good["jpeg"], 8000, 8000),
		"jpeg that is only a start":   []byte("\xff\xd8\xff\xe0"),
		"jpeg without a picture":      []byte("\xff\xd8\xff\xd9"),
		"page and jpeg":               append([]byte("<script>alert(1)</script>"), good["jpeg"]...),
		"png that inflates, padded":   append(pngOf(4096, 4096, 1, 0, 0, zeros(4096*513)), make([]byte, 1<<20)...),
		"heic":                        HEIC(),
		"webp of 16384 pixels a side": WebP(16384, 16384), // 1 GiB and 28 s in golang.org/x/image v0.47.0
		"webp of 24 million pixels":   WebP(8192, 3000),
		"webp with another size":      extended(WebP(5000, 5000), 10, 10),
		"webp of a size it lacks":     riffSize(good["webp"], 1<<31-1),
		"webp without a picture":      riff("JUNK", make([]byte, 16)),
		"pdf and jpeg":                append([]byte("%PDF-1.7\n"), good["jpeg"]...),
	}
	for name, g := range good {
		all[name+" cut in half"] = g[:len(g)/2]
		if name != "jpeg" { // all its pixels are there
			all[name+" without its last byte"] = g[:len(g)-1]
		}
		all["archive and "+name] = append(docx(), g...)
	}
	return all
}

// docx is an archive that claims to be a document and inflates to 64 MiB.
func docx() []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"[Content_Types].xml", "word/document.xml"} {
		w, err := z.Create(name)
		must(err)
		for range 32 {
			_, err = w.Write([]byte(strings.Repeat(" ", 1<<20)))
			must(err)
		}
	}
	must(z.Close())
	return b.Bytes()
}

// gifOf returns the header of a GIF with one empty frame.
func gifOf(width, height uint16) []byte {
	b := binary.LittleEndian.AppendUint16([]byte("GIF89a"), width)
	b = binary.LittleEndian.AppendUint16(b, height)
	b = append(b, 0x80, 0, 0, 0, 0, 0, 255, 255, 255, 0x2c, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, width)
	b = binary.LittleEndian.AppendUint16(b, height)
	return append(b, 0, 2, 2, 0x4c, 1, 0, 0x3b)
}

// gifFrame sets a frame width that differs from the screen.
func gifFrame(g []byte, width uint16) []byte {
	binary.LittleEndian.PutUint16(g[24:], width)
	return g
}

// sized returns a JPEG whose frame declares another size.
func sized(j []byte, width, height uint16) []byte {
	j = slices.Clone(j)
	at := bytes.Index(j, []byte{0xff, 0xc0})
	binary.BigEndian.PutUint16(j[at+5:], height)
	binary.BigEndian.PutUint16(j[at+7:], width)
	return j
}

// extended returns a WebP with a canvas of another size before its picture.
func extended(w []byte, width, height uint32) []byte {
	head := []byte{0, 0, 0, 0, byte(width - 1), 0, 0, byte(height - 1), 0, 0}
	body := binary.LittleEndian.AppendUint32([]byte("VP8X"), uint32(len(head)))
	body = slices.Concat(body, head, w[12:])
	out := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body)+4))
	return slices.Concat(out, []byte("WEBP"), body)
}

func riffSize(w []byte, size uint32) []byte {
	w = slices.Clone(w)
	binary.LittleEndian.PutUint32(w[4:], size)
	return w
}
