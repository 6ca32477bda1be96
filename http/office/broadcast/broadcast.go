// Package broadcast serves the bulk messages of section 4.10 of the interface: notifications
// by topic and SMS (D-ADM-04, D-ADM-05). Each answer names the sending job; GET
// /admin/jobs/{id} shows its outcome.
package broadcast

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"castellan/domain/account/user"
	"castellan/domain/delivery/notification"
	"castellan/domain/kit/fault"
	"castellan/domain/office/broadcast"
	"castellan/http/rest"
)

const section = "4.10 Admin operations"

// Group serves the endpoints.
type Group struct{ Service *broadcast.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Post("/admin/send-notification", "Send a notification in the account, by push and by mail", rest.Tenant,
			g.notify, fault.InvalidField).Verified().Idempotent().Body(rest.LargeBody).
			Try(`{"memberId":["${admin.id}"],"topic":"campaign","title":"New currency","body":"SOL can be traded."}`).
			Names(rest.General, "memberId").Rows().
			Doc("sendNotification", "The parameter NOTIFICATION_TOPICS defines the channels of a topic. A background job "+
				"sends the message to each active recipient. unknown lists the ids without an account."),
		rest.Post("/send-bulk-sms", "Send an SMS to users with a Turkish number", rest.Tenant, g.text,
			fault.InvalidField).Idempotent().Body(rest.LargeBody).
			Try(`{"userIds":["${user.id}"],"messageBody":"SOL can be traded from today.","filter":{"status":"active"}}`).
			Names(rest.General, "userIds").Rows().
			Doc("sendBulkSms", "sendAllUsers: true overrides userIds. The filter narrows either; an unknown key is "+
				"refused. count is the number of recipients. leftOut counts the excluded accounts by the first reason that "+
				"applies."),
	)
}

type notifyRequest struct {
	MemberID        rest.Strings `json:"memberId" maxItems:"10000" blank:"no" doc:"a user id or an array of user ids"`
	Topic           string       `json:"topic" maxLength:"64" example:"campaign"`
	Title           string       `json:"title" maxLength:"200" example:"New currency"`
	Body            string       `json:"body" maxLength:"4000" example:"SOL can be traded from today."`
	ImageURL        *string      `json:"imageUrl" maxLength:"1024" example:"https://cdn.example.com/banner/sol.png"`
	ClickActionType *string      `json:"clickActionType" maxLength:"64" example:"OPEN_MARKET"`
	OperatingSystem *string      `json:"operatingSystem" maxLength:"64" doc:"limits the push to this system" example:"ios"`
	Language        *string      `json:"language" maxLength:"35" doc:"language of the text" example:"tr"`
}

// Validate requires a recipient, and a valid address of the image.
func (in notifyRequest) Validate() error {
	var ps fault.Problems
	ps.Require(len(in.MemberID) > 0, "memberId", "must name a recipient")
	u, err := url.Parse(rest.Or(in.ImageURL, "https://example.com"))
	ps.Require(err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http"), "imageUrl", "must be a URL")
	return fault.All(ps)
}

// notified names the started job.
type notified struct {
	Accepted bool     `json:"accepted"`
	ID       string   `json:"id" doc:"id of the job"`
	Count    int      `json:"count" doc:"number of recipients" example:"2"`
	Unknown  []string `json:"unknown" doc:"ids without an account"`
}

func (g Group) notify(ctx context.Context, who rest.Caller, in notifyRequest) (out rest.Data[notified], err error) {
	started, err := g.Service.Notify(ctx, who.By(), broadcast.Notice{UserIDs: in.MemberID,
		Message: notification.Message{Topic: in.Topic, Title: in.Title, Body: in.Body,
			ImageURL: rest.Or(in.ImageURL, ""), ClickAction: rest.Or(in.ClickActionType, "")},
		System: rest.Or(in.OperatingSystem, ""), Language: rest.Or(in.Language, "")})
	out.Data = notified{true, started.JobID, started.Count, append([]string{}, started.Unknown...)}
	return out, err
}

type textRequest struct {
	UserIDs      *rest.Strings `json:"userIds" maxItems:"10000" doc:"alternative to sendAllUsers: true"`
	SendAllUsers *bool         `json:"sendAllUsers"`
	MessageBody  string        `json:"messageBody" maxLength:"1500" example:"SOL can be traded from today."`
	Filter       *rest.JSON    `json:"filter" schema:"SmsFilter"`

	narrowed user.Audience // of the filter
}

// Validate requires recipients and reads the filter.
func (in *textRequest) Validate() error {
	var ps fault.Problems
	blank := func(id string) bool { return strings.TrimSpace(id) == "" }
	ids := rest.Or(in.UserIDs, nil)
	ps.Require(rest.Or(in.SendAllUsers, false) || len(ids) > 0 && !slices.ContainsFunc(ids, blank), "userIds",
		"either userIds or sendAllUsers: true is required")
	if in.Filter != nil {
		var wrong string
		in.narrowed, wrong = readFilter(*in.Filter)
		ps.Require(wrong == "", "filter", "%s", wrong)
	}
	return fault.All(ps)
}

// readFilter reads a filter, or returns the problem. It refuses unknown keys, because ignoring
// them would send to the wrong people (D-ADM-05).
func readFilter(text []byte) (a user.Audience, wrong string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil {
		return a, "must be an object"
	}
	confirmed := map[string][]string{"true": {user.ManuelApproved, user.OCROrNFCApproved}, // as in the list of users
		"false": {user.WaitingApproval, user.Rejected}}
	values := map[string]*[]string{"status": &a.Statuses, "type": &a.Types, "kycConfirm": &a.KYC}
	for key, value := range members {
		if checks, is := confirmed[string(value)]; is && key == "kycConfirm" {
			a.KYC = checks
			continue
		}
		if to, known := values[key]; known {
			var one string
			if json.Unmarshal(value, &one) == nil && one != "" {
				*to = []string{one}
			} else if json.Unmarshal(value, to) != nil || len(*to) == 0 || len(*to) > 20 {
				return a, "has a value of the wrong type"
			}
			continue
		}
		if key != "levelId" {
			return a, "may have the keys status, type, kycConfirm and levelId"
		}
		level, err := strconv.ParseInt(string(bytes.Trim(value, `"`)), 10, 32)
		if err != nil {
			return a, "has a value of the wrong type"
		}
		a.Level = new(int(level))
	}
	return a, ""
}

// accepted is the job that was started.
type accepted struct {
	Accepted bool       `json:"accepted"`
	ID       string     `json:"id" doc:"id of the job"`
	Count    int        `json:"count" doc:"number of recipients" example:"2"`
	LeftOut  smsLeftOut `json:"leftOut" doc:"excluded accounts, each counted once"`
}

// smsLeftOut holds the reasons in the order in which they are checked.
type smsLeftOut struct {
	Unknown         int `json:"unknown" doc:"ids without an account" example:"1"`
	Filter          int `json:"filter" doc:"accounts that the filter excludes" example:"0"`
	NoTurkishNumber int `json:"noTurkishNumber" doc:"accounts without a Turkish phone number" example:"3"`
	CampaignsOff    int `json:"campaignsOff" doc:"accounts that do not allow campaigns by SMS" example:"1"`
}

func (g Group) text(ctx context.Context, who rest.Caller, in textRequest) (out rest.Data[accepted], err error) {
	sms := broadcast.SMS{Text: in.MessageBody, Filter: in.narrowed}
	if !rest.Or(in.SendAllUsers, false) {
		sms.UserIDs = *in.UserIDs
	}
	started, err := g.Service.Text(ctx, who.By(), sms)
	out.Data = accepted{true, started.JobID, started.Count, smsLeftOut(started.LeftOut)}
	return out, err
}
