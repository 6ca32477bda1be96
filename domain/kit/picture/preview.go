package picture

import (
	"context"
	"image"
	"image/color"
)

const (
	// previewSide is the longest side of a preview in pixels, and previewQuality its JPEG quality.
	previewSide    = 1200
	previewQuality = 80 // of 100
)

// Preview decodes a picture, turns it upright and encodes it again as a small JPEG for display to staff. Transparent
// parts become white. Errors are those of Clean.
func (d *Decoder) Preview(ctx context.Context, field string, data []byte) (Picture, error) {
	return d.encoded(ctx, field, data, func(m image.Image, _ Format) (image.Image, Format) {
		return shrunk(m, previewSide), JPEG
	}, previewQuality)
}

// shrunk returns a picture with no side longer than side: each pixel is the mean of a square, over white.
func shrunk(m image.Image, side int) image.Image {
	from := m.Bounds()
	square := max(1, (max(from.Dx(), from.Dy())+side-1)/side)
	to := image.NewRGBA(image.Rect(0, 0, (from.Dx()+square-1)/square, (from.Dy()+square-1)/square))
	for y := range to.Rect.Dy() {
		for x := range to.Rect.Dx() {
			area := image.Rect(x*square, y*square, (x+1)*square, (y+1)*square)
			to.SetRGBA(x, y, mean(m, area.Add(from.Min).Intersect(from)))
		}
	}
	return to
}

// mean returns the mean colour of a part of a picture.
func mean(m image.Image, area image.Rectangle) color.RGBA {
	var r, g, b, n uint64
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			// RGBA returns 16 bits, premultiplied by the opacity: the rest is white.
			cr, cg, cb, ca := m.At(x, y).RGBA()
			white := 0xffff - ca
			r, g, b, n = r+uint64(cr+white), g+uint64(cg+white), b+uint64(cb+white), n+1
		}
	}
	eight := func(sum uint64) uint8 { return uint8(sum / n >> 8) }
	return color.RGBA{eight(r), eight(g), eight(b), 0xff}
}
