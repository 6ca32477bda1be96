package web_test

import (
	"maps"
	"slices"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/web/webtest"
)

// The viewer shows the error codes of an operation with their statuses, and its examples.
func docsErrors(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	paths := openAPI()["paths"].(object)
	for _, op := range [][2]string{{"completeChallenge", "/auth/2fa/challenge/complete"}, {"login", "/auth/login"}} {
		id, path := op[0], op[1]
		tab.Open("about:blank")
		tab.Open(s.URL + "/docs#" + id)
		want, codes := "", paths[path].(object)["post"].(object)["x-codes"].(object)
		for _, status := range slices.Sorted(maps.Keys(codes)) {
			want += status
			for _, code := range codes[status].([]any) {
				want += code.(string)
			}
		}
		storetest.Equal(t, tab.Text("#"+id+" .errors"), want, id, "shows the errors")
	}
	tab.Text("#login h4 + pre") // waits for the first
	examples := webtest.Value[string](tab, "[...document.querySelectorAll('#login h4 + pre')].map((one) => "+
		"JSON.stringify(JSON.parse(one.textContent))).join(' ')")
	for _, want := range []string{`"password":"correct horse battery"`, `{"challenge":{"challengeId":`} {
		contains(t, "the examples of a login", examples, want)
	}
}

// The viewer uses the page's language, and keeps open sections and typed text when it changes. The texts of the
// document stay English, from left to right, and their line breaks do not break lines.
func docsLanguages(t *testing.T, tab *webtest.Tab) {
	s := newService(t)
	tab.Open(s.URL + "/docs#login")
	tab.See("#login .fields")
	tab.Type("#credential-x-auth", "a-token")
	for _, one := range []struct{ language, dir, title, send, found string }{
		{"ar", "rtl", "الواجهة", "أرسل", "8 نقاط نهاية"},
		{"tr", "ltr", "Arayüz", "Gönder", "8 uç nokta"},
		{"en", "ltr", "Interface", "Send", "8 endpoints"},
	} {
		tab.Choose("#language", one.language)
		tab.Until("document.documentElement.dir === '" + one.dir + "'")
		for selector, want := range map[string]string{
			"h1": one.title, `#login [data-testid="try-send"]`: one.send, "#search-count": one.found,
		} {
			storetest.Equal(t, tab.Text(selector), want, one.language, selector, "says")
		}
		const typed = "document.getElementById('credential-x-auth').value"
		storetest.Equal(t, webtest.Value[string](tab, typed), "a-token", one.language, "the credential became")
	}
	paragraphs := webtest.Value[[]string](tab,
		"[...document.querySelectorAll('#about-text :is(p, li)')].map((one) => one.innerText)")
	want := []string{"Second-factor challenges, sessions and their administration.", "A client answers with p-auth:",
		"by the answer,", "by the socket, which may come first."}
	if !slices.Equal(paragraphs, want) {
		t.Errorf("the introduction reads %q, want %q", paragraphs, want)
	}
	if !webtest.Value[bool](tab, "document.querySelector('#about-text .prose').matches('[lang=en][dir=ltr]')") {
		t.Error("the introduction is not marked as English")
	}
}
