package office

import (
	"encoding/base64"
	"image/jpeg"
	"strings"
	"testing"

	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// The pictures of a slider are public at the addresses in the list, also after a kill. They are removed with
// the announcement (D-ANN-03, REQ-ANN-05).
func TestSliderPicturesArePublic(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss := blackbox.Admin(t, s, n)
		picture := "data:image/jpeg;base64," +
			base64.StdEncoding.EncodeToString(picturetest.WithEXIF(picturetest.JPEG(40, 20), 6))
		n.Ok(t, "POST", "/announcement/add", map[string]any{"title": "Yeni Şube", "message": "m",
			"startDate": "2026-01-01", "endDate": "2026-12-31", "isActive": true, "priority": 1, "showSlider": true,
			"sliderImageData": picture, "iosSliderImageData": picture, "webSliderImageData": picture,
			"sliderName": "s", "routeContent": map[string]any{"to": "x"}, "type": 1}, boss)
		n.Kill()
		n = s.Start()
		boss = blackbox.Admin(t, s, n)
		var list []map[string]any
		n.Ok(t, "GET", "/announcement/get?slug=yeni-sube&isActive=true", nil, nil).Read(t, &list)
		var paths []string
		for _, name := range []string{"sliderImageUrl", "webSliderImageUrl", "iosSliderImageUrl"} {
			url, _ := list[0][name].(string)
			_, path, found := strings.Cut(url, "/cdn/")
			if !found {
				t.Fatalf("%s is %q", name, url)
			}
			paths = append(paths, "/cdn/"+path)
		}
		for _, path := range paths {
			got := n.Do(t, "GET", path, nil, nil)
			m, err := jpeg.DecodeConfig(strings.NewReader(string(got.Body)))
			storetest.Must(t, err)
			if got.Status != 200 || got.Header.Get("Content-Type") != "image/jpeg" || m.Width != 20 || m.Height != 40 ||
				strings.Contains(string(got.Body), "Exif") {
				t.Errorf("%s: %d %v, %d×%d", path, got.Status, got.Header, m.Width, m.Height)
			}
		}
		n.Ok(t, "POST", "/announcement/delete", map[string]any{"id": list[0]["id"]}, boss)
		for _, path := range paths {
			n.Do(t, "GET", path, nil, nil).Is(t, 404, "NOT_FOUND")
		}
		if got := s.Count("audit WHERE action LIKE 'ANNOUNCEMENT_%' AND target = '1'"); got != 2 {
			t.Errorf("%d rows in the audit", got)
		}
	})
}
