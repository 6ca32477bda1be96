package picture

import (
	"image"
	"image/color"
)

// upright returns a view of a picture turned by its EXIF orientation (1 to 8, JEITA CP-3451, tag 0x0112). It copies no
// pixel.
func upright(m image.Image, orientation int) image.Image {
	if orientation < 2 || orientation > 8 {
		return m
	}
	return turned{m, orientation}
}

type turned struct {
	image.Image
	orientation int
}

func (t turned) Bounds() image.Rectangle {
	b := t.Image.Bounds()
	if t.orientation >= 5 {
		return image.Rect(0, 0, b.Dy(), b.Dx())
	}
	return image.Rect(0, 0, b.Dx(), b.Dy())
}

func (t turned) At(x, y int) color.Color {
	b := t.Image.Bounds()
	right, bottom := b.Dx()-1, b.Dy()-1
	switch t.orientation {
	case 2: // mirrored
		x = right - x
	case 3: // upside down
		x, y = right-x, bottom-y
	case 4:
		y = bottom - y
	case 5:
		x, y = y, x
	case 6: // turned to the left
		x, y = y, bottom-x
	case 7:
		x, y = right-y, bottom-x
	case 8: // turned to the right
		x, y = right-y, x
	}
	return t.Image.At(b.Min.X+x, b.Min.Y+y)
}
