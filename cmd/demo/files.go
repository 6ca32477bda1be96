package demo

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
)

// letters are the word on every picture, so that it cannot be mistaken for a real document.
var letters = []string{
	"##.  ###  #...#  .##.",
	"#.#  #..  ##.##  #..#",
	"#.#  ##.  #.#.#  #..#",
	"#.#  #..  #...#  #..#",
	"##.  ###  #...#  .##.",
}

// card returns a small PNG that looks like a card with a portrait, or a portrait alone.
func card(s source, portrait bool) []byte {
	const width, height = 320, 200
	m := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{
		color.RGBA{uint8(170 + s.IntN(70)), uint8(170 + s.IntN(70)), uint8(170 + s.IntN(70)), 255},
		color.RGBA{uint8(40 + s.IntN(80)), uint8(40 + s.IntN(80)), uint8(60 + s.IntN(90)), 255},
		color.RGBA{uint8(150 + s.IntN(90)), uint8(110 + s.IntN(70)), 90, 255},
	})
	fill := func(x, y, w, h int, c uint8) {
		draw.Draw(m, image.Rect(x, y, x+w, y+h), image.NewUniform(m.Palette[c]), image.Point{}, draw.Src)
	}
	face := image.Rect(20, 40, 100, 150)
	if portrait {
		face = image.Rect(90, 30, 230, 200)
	}
	fill(face.Min.X, face.Min.Y, face.Dx(), face.Dy(), 1)
	fill(face.Min.X+face.Dx()/4, face.Min.Y+face.Dy()/5, face.Dx()/2, face.Dy()/2, 2)
	for line := 0; !portrait && line < 5; line++ {
		fill(120, 50+line*22, 60+s.IntN(120), 8, 1)
	}
	for y, row := range letters {
		for x, dot := range row {
			if dot == '#' {
				fill(120+x*4, 170+y*4, 4, 4, 1)
			}
		}
	}
	var out bytes.Buffer
	check(png.Encode(&out, m))
	return out.Bytes()
}

// pdf returns a page with some lines of text.
func pdf(lines ...string) []byte {
	var text bytes.Buffer
	text.WriteString("BT /F1 14 Tf 72 760 Td 20 TL\n")
	for _, l := range lines {
		fmt.Fprintf(&text, "(%s) Tj T*\n", latin.Replace(l))
	}
	text.WriteString("ET")
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", text.Len(), text.String()),
	}
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	at := make([]int, len(objects))
	for i, o := range objects {
		at[i] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range at {
		fmt.Fprintf(&out, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&out, "trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, table)
	return out.Bytes()
}
