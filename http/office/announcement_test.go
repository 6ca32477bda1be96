package office_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/announcement"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpannouncement "castellan/http/office/announcement"
	"castellan/outbound/folder"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

const cdn = "https://cdn.example.com"

type site struct {
	*apitest.Site
	t     *testing.T
	store announcement.Store
	files blob.Store
	db    *persistence.DB
}

func both(t *testing.T, test func(s *site)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		files, store := persistencetest.Files(t), office.NewAnnouncements(db)
		service := &announcement.Service{Store: store, HTML: richtext.New(cdn), Pictures: picture.NewDecoder(), Files: files,
			Changes: admin.Changes{Commit: db, Now: time.Now, Lock: store.Lock}}
		group := httpannouncement.Group{Service: service, CDN: cdn}
		test(&site{apitest.Serve(t, edge.Options{}, group).Below("/announcement/"), t, store, files, db})
	})
}

const (
	fields = `"message":"m","startDate":1700000000000,"endDate":1700000000001,"isActive":true,"priority":1`
	nulls  = `"orderNo":null,"isExpanded":null,"isPinned":null,"showSlider":null,"sliderImageUrl":null,` +
		`"webSliderImageUrl":null,"iosSliderImageUrl":null,"type":null,"sliderClientType":null}`
	shown = `"message":"m","htmlContent":null,"routeContent":null,"startDate":"2023-11-14T22:13:20.000Z",` +
		`"endDate":"2023-11-14T22:13:20.001Z","isActive":true,"priority":1,` + nulls
)

// The slug, the partial update, who may write, and what the server owns.
func TestAnnouncements(t *testing.T) {
	both(t, func(s *site) {
		first := `{"id":1,"slug":"yeni-sube","title":"Yeni Şube",` + shown
		s.Wants("POST add", `{"title":"Yeni Şube","id":7,"slug":"x","createdBy":"x",`+fields+`}`, 200,
			`{"data":`+first+`}`)
		second := `{"id":2,"slug":"yeni-sube-2","title":"yeni şube!",` + shown
		s.Wants("POST add", `{"title":"yeni şube!",`+fields+`}`, 200, `{"data":`+second+`}`)
		s.Wants("POST update", `{"id":"1","title":"Y","isPinned":true,"endDate":"2023-11-13"}`, 400, "INVALID_FIELD endDate")
		s.Wants("POST update", `{"id":1,"isActive":false,"slug":"y","createdBy":"y","title":null}`, 200,
			`{"data":`+strings.Replace(first, `"isActive":true`, `"isActive":false`, 1)+`}`)
		s.Wants("POST update", `{"id":9,"title":"x"}`, 404, "RECORD_NOT_FOUND")
		third := strings.NewReplacer("14T22:13:20.001", "15T23:59:59.999", `"orderNo":null`, `"orderNo":4`, `"type":null`,
			`"type":1`).Replace(second)
		s.Wants("POST update", `{"id":2,"endDate":"2023-11-15","orderNo":4,"type":1}`, 200, `{"data":`+third+`}`)
		s.Wants("POST update", `{"id":2,"endDate":1700000000001,"orderNo":null,"type":null}`, 200, `{"data":`+second+`}`)
		for query, want := range map[string]string{"?isActive=true": second, "?isActive=1&id=2": second,
			"?slug=yeni-sube-2": second, "?slug=Yeni-sube-2": "", "?id=9": "", "?id=2&isActive=false": ""} {
			s.As("anonymous").Wants("GET get"+query, "", 200, "["+want+"]")
		}
		a := storetest.Value(s.store.List(t.Context(), announcement.Query{}))(t)
		if len(a) != 2 || a[0].CreatedBy != "admin" || a[0].UpdatedBy != "admin" {
			t.Errorf("%+v", a)
		}
		s.Wants("POST delete", `{"id":"2"}`, 200, `{"data":{"id":2}}`)
		s.Wants("POST delete", `{"id":2}`, 404, "RECORD_NOT_FOUND")
		if got := audited(t, s.db); got != "ANNOUNCEMENT_ADD 1  yeni-sube\nANNOUNCEMENT_ADD 2  yeni-sube-2\n"+
			"ANNOUNCEMENT_DELETE 2  yeni-sube-2\nANNOUNCEMENT_UPDATE 1  Active\n"+
			strings.Repeat("ANNOUNCEMENT_UPDATE 2  EndAt OrderNo Type\n", 2) {
			t.Errorf("audited\n%s", got)
		}
	})
}

// Each field sent wrong once is named, and nothing changes.
func TestRefusals(t *testing.T) {
	both(t, func(s *site) {
		s.Wants("POST add", `{"title":"t",`+fields+`}`, 200, `{"data":{"id":1,"slug":"t","title":"t",`+shown+`}`)
		long := strings.Repeat("x", 20001)
		wrong := map[string][]string{
			"startDate": {`0`}, "endDate": {`"10000-01-01"`, `1`, `8640000000000000`},
			"htmlContent":      {`"` + strings.Repeat("&", 100000) + `"`},
			"sliderClientType": {`""`}, "sliderName": {`" "`},
			"titleJson": {`{"de":"x"}`, `{"tr":"` + long + `"}`}, "messageJson": {`[]`, `{"TR":"x"}`},
			"htmlContentJson": {`{"":""}`}, "routeContent": {`[]`, `{"a":"` + long + `"}`},
			"routeContentJson": {`{"tr":[]}`, `{"de":{}}`}, "sliderImageData": {`""`, `"AAAA"`},
			"iosSliderImageData": {`"PHN2Zy8+"`}, "webSliderImageData": {`"data:image/png;base64,AAAA"`},
		}
		for field, values := range wrong {
			for _, value := range values {
				_, answer := s.Call("POST update", `{"id":1,"`+field+`":`+value+`}`)
				if got := apitest.Refusal(answer); !regexp.MustCompile(`^INVALID_FIELD ` + field + `(\.\w*)?$`).MatchString(got) {
					t.Errorf("%s %.30s: %.300s", field, value, answer)
				}
			}
		}
		s.Wants("POST update", `{"id":1}`, 200, `{"data":{"id":1,"slug":"t","title":"t",`+shown+`}`)
	})
}

// Texts follow the language of the request, and HTML is clean in each (D-ANN-05, D-ANN-06).
func TestLanguages(t *testing.T) {
	both(t, func(s *site) {
		if status, answer := s.Call("POST add", `{"title":"plain",`+fields+`,"titleJson":{"tr":"Türkçe","en":" "},`+
			`"messageJson":{},"htmlContent":"<p onclick=x()>p</p>","htmlContentJson":{"ar":"<b>ع</b><script>x</script>"},`+
			`"routeContent":{"to":"all","n":1.50},"routeContentJson":{"tr":{"to":"tr"}}}`); status != 200 {
			t.Fatal(answer)
		}
		titles := func(language, title, html, route string) {
			t.Helper()
			_, answer := s.As("anonymous").Send("GET get", "", "Accept-Language", language)
			for _, part := range []string{`"title":"` + title + `"`, `"message":"m"`, `"htmlContent":` + html + `,`,
				`"routeContent":` + route + `,`} {
				storetest.Contains(t, answer, part, language)
			}
		}
		titles("tr", "Türkçe", `"<b>ع</b>"`, `{"to":"tr"}`)
		titles("ar", "Türkçe", `"<b>ع</b>"`, `{"to":"all","n":1.50}`)
		titles("de", "Türkçe", `"<b>ع</b>"`, `{"to":"all","n":1.50}`)
		if status, answer := s.Call("POST update", `{"id":1,"titleJson":{},"htmlContentJson":null,"routeContent":null,`+
			`"routeContentJson":{"en":{"to":"en"}}}`); status != 200 {
			t.Fatal(answer)
		}
		titles("tr", "plain", `"<p>p</p>"`, `null`)
		titles("en", "plain", `"<p>p</p>"`, `{"to":"en"}`)
		old := func(a announcement.Announcement) (announcement.Announcement, error) {
			a.HTML, a.Policy = new("<i onclick=x()>old</i>"), "0"
			return a, nil
		}
		storetest.Must(t, s.store.Change(t.Context(), 1, old))
		titles("en", "plain", `"<i>old</i>"`, `{"to":"en"}`)
	})
}

// The requirements of the slider (D-ANN-03), and the pictures that follow the row.
func TestSlider(t *testing.T) {
	both(t, func(s *site) {
		image := func(side int) string {
			return `"` + base64.StdEncoding.EncodeToString(picturetest.WithEXIF(picturetest.JPEG(side, side), 1)) + `"`
		}
		rest := `"sliderName":"s","routeContent":{},"type":1,"iosSliderImageData":` + image(9) +
			`,"webSliderImageData":` + image(9)
		add := func(more string) string { return `{"title":"t",` + fields + `,"showSlider":true` + more + `}` }
		s.Wants("POST add", add(""), 400,
			"INVALID_FIELD sliderImageData iosSliderImageData webSliderImageData sliderName routeContent type")
		s.Wants("POST add", add(`,"routeContentJson":{"tr":{}},`+strings.Replace(rest, "routeContent", "x", 1)), 400,
			"INVALID_FIELD sliderImageData routeContent")
		s.Wants("POST add", add(`,"sliderImageData":"R0lGODlh",`+rest), 400, "INVALID_FIELD sliderImageData")
		s.has(0)
		status, answer := s.Call("POST add", add(`,"sliderImageData":`+image(8)+`,`+rest))
		if status != 200 {
			t.Fatal(answer)
		}
		before := s.pictures(answer)
		s.has(3, before...)
		status, answer = s.Call("POST update", `{"id":1,"title":"u","showSlider":true,"iosSliderImageData":`+image(7)+`}`)
		after := s.pictures(answer)
		if status != 200 || after[0] != before[0] || after[1] == before[1] || after[2] != before[2] {
			t.Errorf("%d %v after %v", status, after, before)
		}
		s.has(3, after...)
		s.Wants("POST update", `{"id":1,"webSliderImageData":null}`, 400, "INVALID_FIELD webSliderImageData")
		s.Wants("POST update", `{"id":1,"routeContent":null}`, 400, "INVALID_FIELD routeContent")
		s.Gets("POST update", `{"id":1,"routeContent":null,"routeContentJson":{"tr":{}}}`, "200")
		s.Gets("POST update", `{"id":1,"showSlider":false,"webSliderImageData":null}`, "200")
		s.has(2, after[0], after[1])
		s.Wants("POST update", `{"id":1,"showSlider":true}`, 400, "INVALID_FIELD webSliderImageData")
		s.Wants("POST delete", `{"id":1}`, 200, `{"data":{"id":1}}`)
		s.has(0)
		// Without the storage of files nothing is added.
		storetest.Must(t, s.files.(*folder.Store).Close())
		s.Wants("POST add", add(`,"sliderImageData":`+image(8)+`,`+rest), 503, "UNAVAILABLE")
		s.Wants("GET get", "", 200, "[]")
	})
}

// pictures are the keys of an answer: Android, iOS, web.
func (s *site) pictures(answer string) (keys []string) {
	s.t.Helper()
	var got struct {
		Data struct{ SliderImageURL, IOSSliderImageURL, WebSliderImageURL string }
	}
	storetest.Must(s.t, json.Unmarshal([]byte(answer), &got))
	for _, url := range []string{got.Data.SliderImageURL, got.Data.IOSSliderImageURL, got.Data.WebSliderImageURL} {
		path, ok := strings.CutPrefix(url, cdn+"/")
		if !ok {
			s.t.Errorf("the address %q", url)
		}
		keys = append(keys, blob.PublicKey(path))
	}
	return keys
}

// has checks that so many files are kept, these among them, clean and for the sweeper to leave.
func (s *site) has(n int, keys ...string) {
	s.t.Helper()
	for info, err := range s.files.List(s.t.Context(), announcement.Area) {
		storetest.Must(s.t, err)
		n--
		storetest.Equal(s.t, len(storetest.Value(s.store.ReferencedKeys(s.t.Context(), []string{info.Key}))(s.t)), 1)
	}
	storetest.Equal(s.t, n, 0, "files are missing")
	for _, key := range keys {
		f := storetest.Value(s.files.Get(s.t.Context(), key))(s.t)
		content := storetest.Value(io.ReadAll(f))(s.t)
		storetest.Must(s.t, f.Close())
		if picture.Sniff(content) != picture.JPEG || bytes.Contains(content, []byte("Exif")) {
			s.t.Errorf("%s is not a clean picture", key)
		}
	}
}
