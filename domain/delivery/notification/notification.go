// Package notification owns the notifications of users inside their account (decisions D-ADM-04, D-EVT-01). An in-app
// notification is a row that commits in the unit of the change that causes it, and is thereby delivered. So none is
// lost, and none reports a change that did not happen.
//
// Start reading at Add, which any package adds to its own writes.
package notification

import (
	"context"
	"time"
	"unicode/utf8"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
)

// Notification is one message in a user's account.
type Notification struct {
	ID     string // begins with its instant
	UserID string
	Message
	CreatedAt time.Time
	ReadAt    time.Time // zero: unread
}

// Message is the content of a notification. Only the first three fields are always set.
type Message struct {
	Topic       string `json:"topic"`
	Title       string `json:"title"`
	Body        string `json:"body"`
	ImageURL    string `json:"imageUrl,omitempty"`
	ClickAction string `json:"clickActionType,omitempty"`
}

// Bounds of a message's texts, in characters.
const (
	MaxTopic = 64
	MaxTitle = 200
	MaxBody  = 4000
	maxOther = 1024
)

// Check validates a message. INVALID_FIELD with every faulty field.
func (m Message) Check() error {
	var ps []fault.Problem
	for _, f := range []struct {
		field, text string
		most        int
	}{{"topic", m.Topic, MaxTopic}, {"title", m.Title, MaxTitle}, {"body", m.Body, MaxBody},
		{"imageUrl", m.ImageURL, maxOther}, {"clickActionType", m.ClickAction, maxOther}} {
		if utf8.RuneCountInString(f.text) > f.most {
			ps = append(ps, fault.Problem{Field: f.field, Message: "is too long"})
		}
	}
	return fault.All(ps)
}

func New(now time.Time, userID string, m Message) Notification {
	return Notification{ID: id.New(now), UserID: userID, Message: m, CreatedAt: now}
}

// Add inserts a notification.
type Add struct{ Notification }

func (Add) Table() string { return "notification" }

// Place is the position of a notification in the list of its user, newest first.
type Place struct{ ID string }

func (n Notification) Mark() Place { return Place{n.ID} }

// Query selects notifications of one user.
type Query struct {
	UserID string
	Unread bool // only unread ones
}

// Store reads notifications, which are added by Add. Every method joins the transaction of its context. It is safe for
// concurrent use.
type Store interface {
	// List returns a page of the selected notifications, newest first.
	List(ctx context.Context, q Query, p page.Query[Place]) (page.Of[Notification], error)
	// Read marks notifications of a user as read and returns how many were unread before. It ignores ids of other
	// users; nil: all.
	Read(ctx context.Context, userID string, ids []string) (int, error)
}
