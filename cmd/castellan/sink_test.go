package main

import (
	"net"
	"net/http"
	"net/smtp"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/logtest"
)

// The sink prints each SMS and each mail in one line, decoded.
func TestSinkPrintsMessages(t *testing.T) {
	var out logtest.Text
	s := sink{out: &out}
	serve := func(on func(net.Listener) error) string {
		l := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
		var over sync.WaitGroup
		over.Go(func() { _ = on(l) })
		t.Cleanup(func() { l.Close(); over.Wait() })
		return l.Addr().String()
	}
	gateway := "http://" + serve(s.serveSMS) + "/"
	for _, send := range []func() (*http.Response, error){
		func() (*http.Response, error) {
			return http.Get(gateway + "?to=%2B905321234567&text=Code%3A+123456%0Afor+you")
		},
		func() (*http.Response, error) {
			return http.PostForm(gateway, url.Values{"text": {"654321"}, "to": {"+1"}})
		},
		func() (*http.Response, error) {
			return http.Post(gateway, "application/json", strings.NewReader(`{"to": "+2"}`))
		},
	} {
		answer := storetest.Value(send())(t)
		answer.Body.Close()
	}
	letter := "To: a@example.com\r\nSubject: =?utf-8?q?G=C3=BCn?=\r\n" +
		"Content-Type: multipart/alternative; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: text/html\r\n\r\n<p>x</p>\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\n" +
		"Content-Transfer-Encoding: quoted-printable\r\n\r\nCode=20\r\n123456\r\n--b--\r\n"
	storetest.Must(t, smtp.SendMail(serve(s.serveMail), nil, "b@example.com", []string{"a@example.com"}, []byte(letter)))
	want := "sms text=Code: 123456 for you to=+905321234567\nsms text=654321 to=+1\nsms {\"to\": \"+2\"}\n" +
		"mail to=a@example.com subject=Gün text=Code 123456\n"
	storetest.Equal(t, out.String(), want)
	if code, _, _ := command(t, []string{"DATA_DIR=" + t.TempDir()}, "sink --mail 0.0.0.0:8026"); code != 1 {
		t.Errorf("an address of other machines: exit %d", code)
	}
}

// A link in the wrong database is visible: the command prints the database and the issuers of its settings.
func TestUserLinkNamesItsSettings(t *testing.T) {
	file := "sqlite:" + filepath.Join(t.TempDir(), "other.db")
	code, _, got := command(t, []string{"DATA_DIR=" + t.TempDir(), "DATABASE_URL=" + file},
		"user link --user u1 --issuer i --subject s")
	want := "database.url (env): " + file + "\nguard.issuers (default): []\ncastellan: there is no database: "
	if code != 1 || !strings.HasPrefix(got, want) {
		t.Errorf("exit %d, %q, want %q", code, got, want)
	}
}
