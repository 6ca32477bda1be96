// Package message owns what is said to people outside the service: the texts
// of one-time codes and of security notices, in Turkish, English and Arabic,
// and the port through which they leave (Sender, with its DeliveryError).
//
// The one idea: every template is cut into literal pieces and blanks when a
// Book is made, so that rendering, which happens for every method of every
// login, is copying pieces into one buffer. A value is therefore never looked
// at again for placeholders, is always escaped in HTML and never in text.
//
// Start at Book.Render, then builtin.go for the texts and kinds.go for the
// notices to owners. Implements D-2FA-29
// (templates), D-GEN-16 (language fallback) and the sending half of D-EVT-01
// and D-EXT-05; adapters are in outbound/mail, outbound/sms and
// outbound/push.
package message

import (
	"errors"
	"log/slog"
	"slices"

	"castellan/domain/kit/pack"
)

// Channel is a way to reach a person, spelled as on the wire.
type Channel string

// The channels that have templates.
const (
	SMS  Channel = "SMS"
	MAIL Channel = "MAIL"
)

// Push is the channel that wakes a device. It has no templates: To is where the
// device is reached, as JSON, and Text what it is told, without anything secret.
const Push Channel = "push"

// Names of the built-in templates. A template of the same name, language and
// channel given to NewBook replaces one.
const (
	// OTP carries a one-time code; it is the default of both channels. Values:
	// otp, action, expire.
	OTP = "otp"
	// The decisions on who an account belongs to and where that person lives. Those
	// that refuse take the value reason.
	KYCApproved     = "kyc-approved"
	KYCRejected     = "kyc-rejected"
	AddressApproved = "address-approved"
	AddressRejected = "address-rejected"
	// What the treasury decided on a deposit. Both take the value amount.
	DepositCredited = "deposit-credited"
	DepositSender   = "deposit-sender"
)

// Values fill the placeholders of a template, by name: otp, action, expire,
// device, ip, time, reason, amount. A missing one is empty. An expire of digits only counts
// seconds and is written as a duration in the language of the message, so that
// a template says "valid for {{expire}}"; any other text is taken as it is.
// The placeholder brand is fixed by the Book.
type Values map[string]string

// Rendered is a message ready to be sent. It holds a secret in several fields:
// it is sealed before it is stored, and its String and LogValue show only the
// channel and the language.
type Rendered struct {
	Channel  Channel
	To       string // +905…, a mail address, or a push target
	Subject  string // "" for SMS; free of control characters
	Text     string
	HTML     string // "" when the template has none
	Code     string // the code alone, shown by the development outbox only
	Language string // of the template that was used
	// Attachment goes with a mail that is sent at once; the stored form has none.
	Attachment *Attachment
}

// Attachment is a file that goes with a mail. It is not changed.
type Attachment struct {
	Name    string // with its extension
	Type    string // media type
	Content []byte
}

// String implements fmt.Stringer without the content.
func (r Rendered) String() string { return string(r.Channel) + " message (" + r.Language + ")" }

// GoString keeps %#v from showing the content.
func (r Rendered) GoString() string { return r.String() }

// LogValue implements slog.LogValuer without the content.
func (r Rendered) LogValue() slog.Value { return slog.StringValue(r.String()) }

// binaryVersion is the first byte of the stored form; a change of the fields
// takes the next number and keeps reading this one.
const binaryVersion = 1

var errBinary = errors.New("message: malformed stored form")

// AppendBinary implements encoding.BinaryAppender: the form in which a message
// is sealed and stored. JSON would grow the HTML by a quarter.
func (r Rendered) AppendBinary(b []byte) ([]byte, error) {
	fields := [...]string{string(r.Channel), r.To, r.Subject, r.Text, r.HTML, r.Code, r.Language}
	size := 1
	for _, s := range fields {
		size += 3 + len(s) // a length of three bytes is seldom exceeded
	}
	b = append(slices.Grow(b, size), binaryVersion)
	for _, s := range fields {
		b = pack.String(b, s)
	}
	return b, nil
}

// UnmarshalBinary reads the form of AppendBinary. Anything else, a longer one
// included, is an error that leaves r as it was.
func (r *Rendered) UnmarshalBinary(data []byte) error {
	if len(data) == 0 || data[0] != binaryVersion {
		return errBinary
	}
	in := pack.Read(string(data[1:]))
	var fields [7]string
	for i := range fields {
		fields[i] = in.String()
	}
	if !in.Exact() {
		return errBinary
	}
	*r = Rendered{Channel: Channel(fields[0]), To: fields[1], Subject: fields[2], Text: fields[3], HTML: fields[4],
		Code: fields[5], Language: fields[6]}
	return nil
}
