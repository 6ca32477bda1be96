package mail_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"strings"
	"testing"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/storetest"
)

// A file is attached unchanged to the mail, with its name and type.
func TestAttachment(t *testing.T) {
	r, ca := secured(t)
	file := bytes.Repeat([]byte("%PDF-1.4 \x00\xff\r\n.\r\n"), 20_000)
	m := message.Rendered{Channel: message.MAIL, To: "user@example.org", Subject: "Koşullar", Text: "Açıklama\n",
		Attachment: &message.Attachment{Name: "agreement-2.1.pdf", Type: "application/pdf", Content: file}}
	storetest.Must(t, newSender(t, r, ca, nil).Send(t.Context(), "m1", m))
	got := storetest.Value(netmail.ReadMessage(strings.NewReader(r.messages()[0].data)))(t)
	kind, params, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		t.Fatalf("%s, %v", kind, err)
	}
	parts := multipart.NewReader(got.Body, params["boundary"])
	text, err := parts.NextPart() // decodes quoted-printable
	storetest.Must(t, err)
	storetest.Equal(t, strings.TrimSpace(string(storetest.Value(io.ReadAll(text))(t))), "Açıklama")
	attached := storetest.Value(parts.NextPart())(t)
	body, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, attached))
	if err != nil || !bytes.Equal(body, file) || attached.FileName() != "agreement-2.1.pdf" ||
		!strings.HasPrefix(attached.Header.Get("Content-Type"), "application/pdf") {
		t.Errorf("%d bytes of %d, %v, %v", len(body), len(file), err, attached.Header)
	}
}
