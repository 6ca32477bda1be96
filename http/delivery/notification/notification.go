// Package notification serves the notifications in a user's account: two extension endpoints
// beside send-notification of section 4.10 of the interface.
package notification

import (
	"context"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// Group serves the notifications of the caller.
type Group struct{ Store notification.Store }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section("Extensions: notifications",
		rest.Get("/user/notifications", "List the caller's notifications, newest first", rest.User, g.list,
			fault.InvalidField).
			Try("limit=10").
			Doc("listNotifications", "unread=true omits notifications that are marked as read."),
		rest.Post("/user/notifications/read", "Mark the caller's notifications as read", rest.User, g.read,
			fault.InvalidField).
			Try(`{"ids":["01JD3X4Q7V0S8D4T2M6B9N1ZKA"]}`).
			Doc("readNotifications", "Send ids, or all: true. Ids of notifications of other accounts are ignored."),
	).Extended()
}

type listRequest struct {
	Unread *bool `json:"unread"`
	rest.Paging
}

type record struct {
	ID              string     `json:"id"`
	Topic           string     `json:"topic" example:"campaign"`
	Title           string     `json:"title" example:"New currency"`
	Body            string     `json:"body" example:"SOL can be traded from today."`
	ImageURL        *string    `json:"imageUrl" example:"https://cdn.example.com/banner/sol.png"`
	ClickActionType *string    `json:"clickActionType" example:"OPEN_MARKET"`
	CreatedAt       rest.Time  `json:"createdAt"`
	ReadAt          *rest.Time `json:"readAt" doc:"null: unread" example:"2026-11-22T10:00:00.000Z"`
}

func show(n notification.Notification) record {
	return record{n.ID, n.Topic, n.Title, n.Body, rest.Filled(n.ImageURL), rest.Filled(n.ClickAction),
		rest.Time{Time: n.CreatedAt}, rest.At(n.ReadAt)}
}

func (g Group) list(ctx context.Context, who rest.Caller, in listRequest) (rest.Reply[[]record], error) {
	q := notification.Query{UserID: who.UserID, Unread: rest.Or(in.Unread, false)}
	return rest.List(ctx, who, in.Paging, q, g.Store.List, show)
}

type readRequest struct {
	IDs *rest.Strings `json:"ids" maxItems:"1000" doc:"alternative to all"`
	All *bool         `json:"all" doc:"true marks all notifications"`
}

// Validate requires exactly one of the two.
func (in readRequest) Validate() error {
	if all := rest.Or(in.All, false); all == (in.IDs != nil) {
		return fault.Invalid("ids", "send either ids or all: true")
	}
	return nil
}

type marked struct {
	Read int `json:"read" doc:"number of notifications that were unread before" example:"1"`
}

func (g Group) read(ctx context.Context, who rest.Caller, in readRequest) (out rest.Data[marked], err error) {
	var ids []string
	if in.IDs != nil {
		ids = append([]string{}, *in.IDs...)
	}
	out.Data.Read, err = g.Store.Read(ctx, who.UserID, ids)
	return out, err
}
