package parameter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
)

// Shape is the Go type of a parameter's object. Check describes the fault of the object in a few words, or returns "".
type Shape interface{ Check() string }

// Kind is a parameter that the service reads, with its shape T.
type Kind[T Shape] struct {
	Code, Name string
	First      T // the object in a new installation
}

// The parameters that the service reads. List a new one in kinds too.
var (
	UserStatus     = Kind[List]{"USER_STATUS", "User statuses", List{[]string{"active", "passive", "blocked", "closed"}}}
	UserType       = Kind[List]{"USER_TYPE", "User types", List{[]string{"bireysel", "kurumsal"}}}
	DocumentStatus = Kind[List]{"DOCUMENT_STATUS", "Document statuses", List{[]string{"active", "deActive"}}}
	DocumentReason = Kind[List]{"DOCUMENT_REASON", "Document reasons",
		List{[]string{"waitingApproval", "approved", "rejected"}}}
	DocumentType = Kind[List]{"DOCUMENT_TYPE", "Document types", List{[]string{"0", "1", "2", "3", "4", "5"}}}
	CDN          = Kind[Folders]{"CDN", "Folders of the CDN",
		Folders{[]string{"announcement", "banner", "currency", "logo", "notification"}}}
	AMLControl = Kind[Ignored]{"AMLCONTROL", "AML control", Ignored{[]string{}}}
	Treasury   = Kind[Addresses]{"TREASURY", "Treasury addresses", Addresses{}}
	Fee        = Kind[Fees]{"WITHDRAWAL_FEE", "Withdrawal fees", Fees{}}
	Minimum    = Kind[Fees]{"WITHDRAWAL_MINIMUM", "Minimum withdrawals", Fees{}}
	Explorer   = Kind[Links]{"EXPLORER", "Explorers of networks", Links{}}
	Topics     = Kind[Channels]{"NOTIFICATION_TOPICS", "Channels of notifications by topic",
		Channels{Topics: map[string][]string{"campaign": {InApp, Push}, "security": {InApp, Push, Mail}},
			Other: []string{InApp, Push, Mail}}}
	Explanation = Kind[MinLength]{"EXPLANATION", "Explanation of additional information", MinLength{3}}
	KYCLevel    = Kind[Reached]{"KYC_LEVEL", "Level of confirmed accounts", Reached{}}
)

var kinds = []kind{UserStatus, UserType, DocumentStatus, DocumentReason, DocumentType, CDN, AMLControl, Treasury,
	Fee, Minimum, Explorer, Topics, Explanation, KYCLevel}

// Codes lists the codes of the parameters that the service reads.
func Codes() []string {
	codes := make([]string, len(kinds))
	for i, k := range kinds {
		codes[i] = k.first().Code
	}
	return codes
}

// List is a list of codes (D-GEN-17).
type List struct {
	Values []string `json:"values"`
}

// Allows reports whether a value is in the list. The comparison is exact.
func (l List) Allows(value string) bool { return slices.Contains(l.Values, value) }

func (l List) Check() string {
	if len(l.Values) == 0 || !distinct(l.Values) {
		return "values must be a list of different codes of 1 to 64 characters"
	}
	return ""
}

// Folders lists the allowed values of folderType of an upload (D-ADM-06).
type Folders struct {
	FolderTypes []string `json:"folderTypes"`
}

var folderName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (f Folders) Check() string {
	bad := func(name string) bool { return !folderName.MatchString(name) }
	if len(f.FolderTypes) == 0 || !distinct(f.FolderTypes) || slices.ContainsFunc(f.FolderTypes, bad) {
		return "folderTypes must be a list of different names of 1 to 64 letters, digits, _ and -"
	}
	return ""
}

// Ignored lists the users that the AML control ignores (D-KYC-06).
type Ignored struct {
	IgnoredUsers []string `json:"ignoredUsers"`
}

func (i Ignored) Check() string {
	if i.IgnoredUsers == nil || !distinct(i.IgnoredUsers) {
		return "ignoredUsers must be a list of different user ids"
	}
	return ""
}

// IgnoredDiffer returns the users that only one of two objects of AMLControl ignores, in the order of their ids.
func IgnoredDiffer(before, after json.RawMessage) (users []string) {
	was, is := ignoredIn(before), ignoredIn(after)
	for id := range was {
		if !is[id] {
			users = append(users, id)
		}
	}
	for id := range is {
		if !was[id] {
			users = append(users, id)
		}
	}
	slices.Sort(users)
	return users
}

// ignoredIn returns the users that an object of AMLControl ignores. The service decodes member names in any case and a
// query matches them exactly, so both readings count.
func ignoredIn(object json.RawMessage) map[string]bool {
	var decoded Ignored
	var members map[string]json.RawMessage
	var exact []string
	_ = json.Unmarshal(object, &decoded) // an object of another shape ignores no user
	_ = json.Unmarshal(object, &members)
	_ = json.Unmarshal(members["ignoredUsers"], &exact)
	users := map[string]bool{}
	for _, id := range append(decoded.IgnoredUsers, exact...) {
		users[id] = true
	}
	return users
}

// Addresses are the treasury's addresses by currency code and network code
// (D-TX-10).
type Addresses map[string]map[string]string

func (a Addresses) Check() string {
	for currency, networks := range a {
		for network, address := range networks {
			if currency == "" || network == "" || !text(address, 256) {
				return "must map currency and network codes to addresses of 1 to 256 characters"
			}
		}
	}
	return ""
}

// Fees are the default costs of withdrawals, by currency code (section 4.14 of the interface). A withdrawal may have
// its own fee. A currency without an entry is free.
type Fees map[string]amount.Amount

func (f Fees) Check() string {
	for currency, fee := range f {
		if currency == "" || fee.Sign() < 0 {
			return "must map currency codes to amounts of at least 0"
		}
	}
	return ""
}

// Links are the web addresses of transactions, by network code, with {txId} in place of the id (D-PRC-04).
type Links map[string]string

// Of returns the address of a transaction; "" if it has no id or its network has no link.
func (l Links) Of(network, txID string) string {
	if txID == "" {
		return ""
	}
	return strings.ReplaceAll(l[network], "{txId}", url.PathEscape(txID))
}

func (l Links) Check() string {
	for network, link := range l {
		u, err := url.Parse(strings.ReplaceAll(link, "{txId}", "x"))
		if network == "" || !text(link, 512) || !strings.Contains(link, "{txId}") || err != nil || u.Host == "" ||
			u.Scheme != "https" && u.Scheme != "http" {
			return "must map network codes to web addresses with {txId}"
		}
	}
	return ""
}

// The channels of notifications.
const (
	InApp = "inApp"
	Push  = "push"
	Mail  = "mail"
)

// Channels are the channels of a notification, by its topic (D-ADM-04).
type Channels struct {
	Topics map[string][]string `json:"topics"`
	Other  []string            `json:"other"` // of any other topic
}

func (c Channels) Of(topic string) []string {
	if channels, listed := c.Topics[topic]; listed {
		return channels
	}
	return c.Other
}

func (c Channels) Check() string {
	lists := append(slices.Collect(maps.Values(c.Topics)), c.Other)
	for _, list := range lists {
		for _, channel := range list {
			if channel != InApp && channel != Push && channel != Mail {
				return "topics and other must list inApp, push or mail"
			}
		}
	}
	return ""
}

// MinLength is the minimum length of a text in characters (D-INF-04).
type MinLength struct {
	MinLength int `json:"minLength"`
}

func (l MinLength) Check() string {
	if l.MinLength < 0 || l.MinLength > 1000 {
		return "minLength must be 0 to 1000"
	}
	return ""
}

// Reached is the level to which an account is raised; nil: none (D-INT-11).
type Reached struct {
	LevelID *int64 `json:"levelId,omitempty"`
}

// Check rejects a number that is not a possible level.
func (r Reached) Check() string {
	if r.LevelID != nil && (*r.LevelID < 0 || *r.LevelID > 1_000_000) {
		return "levelId must be the number of a level"
	}
	return ""
}

func distinct(values []string) bool {
	seen := map[string]bool{}
	for _, v := range values {
		if seen[v] || !text(v, 64) {
			return false
		}
		seen[v] = true
	}
	return true
}

// text reports whether s has 1 to most characters and no control characters.
func text(s string, most int) bool {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	return strings.TrimSpace(s) != "" && utf8.RuneCountInString(s) <= most && !strings.ContainsFunc(s, control)
}

// kind is a Kind of any shape.
type kind interface {
	first() Parameter
	read(object json.RawMessage) (any, string)
}

func (k Kind[T]) first() Parameter {
	object, _ := json.Marshal(k.First) // a shape consists of strings and numbers
	return Parameter{Code: k.Code, Name: k.Name, JSON: object, Editable: true}
}

// read reads an object, or describes its fault.
func (k Kind[T]) read(object json.RawMessage) (any, string) {
	var value T
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(object, &value); errors.As(err, &wrong) && wrong.Field != "" {
		return nil, fmt.Sprintf("%s has the wrong type", wrong.Field)
	} else if err != nil {
		return nil, "must be an object"
	}
	return value, value.Check()
}

// In returns the value of the parameter in a snapshot.
func (k Kind[T]) In(s *Set) T {
	if value, ok := s.values[k.Code].(T); ok {
		return value
	}
	return k.First
}

// Change calls f with the value of the parameter and saves the result, in the transaction of ctx. It is for changes
// made by the service itself; the caller also commits a note of topic change.Parameters. RECORD_NOT_FOUND;
// INVALID_STATE after a concurrent change.
func (k Kind[T]) Change(ctx context.Context, s Store, f func(T) (T, error)) error {
	p, err := one(ctx, s, Query{Code: &k.Code})
	if err != nil {
		return err
	}
	var value T
	if err := json.Unmarshal(p.JSON, &value); err != nil {
		return fmt.Errorf("the parameter %s: %w", k.Code, err)
	}
	if value, err = f(value); err != nil {
		return err
	}
	object, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = s.Save(ctx, p, object)
	return err
}

// check validates the object of a parameter against its kind; if the service does not read the parameter, any object is
// valid. INVALID_FIELD json.
func check(code string, object json.RawMessage) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || members == nil {
		return fault.Invalid("json", "must be an object")
	}
	for _, k := range kinds {
		if k.first().Code != code {
			continue
		}
		value, wrong := k.read(object)
		if wrong == "" {
			wrong = misspelt(members, value)
		}
		if wrong != "" {
			return fault.Invalid("json", "%s", wrong)
		}
	}
	return nil
}

// misspelt describes a member whose name differs from that of a field in its case alone. The service decodes it, and
// queries of the database do not find it.
func misspelt(members map[string]json.RawMessage, shape any) string {
	t := reflect.TypeOf(shape)
	if t.Kind() != reflect.Struct { // its members are codes
		return ""
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		for member := range members {
			if member != name && strings.EqualFold(member, name) {
				return fmt.Sprintf("must have the member %s in this spelling", name)
			}
		}
	}
	return ""
}
