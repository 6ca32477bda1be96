// Package message owns the messages to people outside the service: the texts of one-time codes and of security
// notices, in Turkish, English and Arabic. It also defines the port that sends them (Sender, with its DeliveryError).
//
// The one idea: a Book splits every template into literal pieces and blanks once. Rendering, which happens for every
// method of every login, then copies pieces into one buffer. A value is therefore never parsed for placeholders, is
// always escaped in HTML and never in text.
//
// Start reading at Book.Render, then builtin.go for the texts and kinds.go for the notices to owners. The package
// implements D-2FA-29 (templates), D-GEN-16 (language fallback) and the sending half of D-EVT-01 and D-EXT-05;
// adapters are in outbound/mail, outbound/sms and outbound/push.
package message

import (
	"errors"
	"log/slog"
	"slices"

	"castellan/domain/kit/pack"
)

// Channel is a way to reach a person, in its wire spelling.
type Channel string

// The channels that have templates.
const (
	SMS  Channel = "SMS"
	MAIL Channel = "MAIL"
)

// Push is the channel that wakes a device. It has no templates: To is the device's target, as JSON, and Text the
// message to it, without secrets.
const Push Channel = "push"

// Callback is the channel to another service. It has no templates: To is the service's URL and Text the JSON body.
const Callback Channel = "callback"

// Names of the built-in templates. A template of the same name, language and channel in the call of NewBook replaces
// one.
const (
	// OTP carries a one-time code; it is the default of both channels. Values:
	// otp, action, expire.
	OTP = "otp"
	// The decisions on the identity and the address of an account's owner. Rejections take the value reason.
	KYCApproved     = "kyc-approved"
	KYCRejected     = "kyc-rejected"
	AddressApproved = "address-approved"
	AddressRejected = "address-rejected"
	// The decisions on a deposit. Both take the value amount.
	DepositCredited = "deposit-credited"
	DepositSender   = "deposit-sender"
)

// Values fill the placeholders of a template, by name: otp, action, expire, device, ip, time, reason, amount. A
// missing one is empty. If expire consists of digits, it is a number of seconds, written as a duration in the
// language of the message. So a template says "valid for {{expire}}". Any other text is unchanged. The Book sets the
// placeholder brand.
type Values map[string]string

// Rendered is a message ready to be sent. Several fields contain a secret: it is sealed before it is stored, and its
// String and LogValue show only the channel and the language.
type Rendered struct {
	Channel  Channel
	To       string // +905…, a mail address, or a push target
	Subject  string // "" for SMS; free of control characters
	Text     string
	HTML     string // "" when the template has none
	Code     string // the code alone, shown by the development outbox only
	Language string // of the template that was used
	// Attachment belongs to a mail that is sent at once; the stored form has none.
	Attachment *Attachment
}

// Attachment is a file in a mail. It is immutable.
type Attachment struct {
	Name    string // with its extension
	Type    string // media type
	Content []byte
}

// String returns a description without the content.
func (r Rendered) String() string { return string(r.Channel) + " message (" + r.Language + ")" }

// GoString keeps the content out of %#v.
func (r Rendered) GoString() string { return r.String() }

// LogValue returns a description without the content.
func (r Rendered) LogValue() slog.Value { return slog.StringValue(r.String()) }

// binaryVersion is the first byte of the stored form. A change of the fields takes the next number and must still
// read this one.
const binaryVersion = 1

var errBinary = errors.New("message: malformed stored form")

// AppendBinary appends the form in which a message is sealed and stored. JSON would grow the HTML by a quarter.
func (r Rendered) AppendBinary(b []byte) ([]byte, error) {
	fields := [...]string{string(r.Channel), r.To, r.Subject, r.Text, r.HTML, r.Code, r.Language}
	size := 1
	for _, s := range fields {
		size += 3 + len(s) // a length rarely needs more than three bytes
	}
	b = append(slices.Grow(b, size), binaryVersion)
	for _, s := range fields {
		b = pack.String(b, s)
	}
	return b, nil
}

// UnmarshalBinary reads the form of AppendBinary. Anything else, including a longer text, is an error that does not
// change r.
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
