package challenge

import (
	"context"
	"time"

	"castellan/domain/proof/device"
	"castellan/http/rest"
)

type ongoingRequest struct {
	DeviceID string `json:"deviceId" doc:"the device that signs the request"`
	Intent   *bool  `json:"intent" doc:"extension: with intent and intentDigest"`
}

// pendingPush is an unanswered push (section 2.1 of the interface).
type pendingPush struct {
	Body string          `json:"body" doc:"text of the question"`
	Data pendingPushData `json:"data"`
	// Intent and IntentDigest are an extension, present if they are requested.
	Intent       *rest.JSON `json:"intent,omitempty" schema:"Intent" doc:"extension: the document that the device signs"`
	IntentDigest string     `json:"intentDigest,omitempty" doc:"extension: the claim int"`
}

type pendingPushData struct {
	ChallengeID string `json:"challengeId"`
	TS          int64  `json:"ts" doc:"creation, epoch ms"`
	MethodID    string `json:"methodId"`
	Action      string `json:"action"`
	ActionTitle string `json:"actionTitle"`
	// NumberMatching is an extension, present if it is on.
	NumberMatching bool `json:"numberMatching,omitempty" doc:"extension: approve with APPROVED:<the starter's number>"`

	Params pendingPushParams `json:"params"`
}

type pendingPushParams struct {
	IP          string    `json:"ip"`
	DeviceBrand string    `json:"deviceBrand"`
	DeviceModel string    `json:"deviceModel"`
	DeviceDesc  string    `json:"deviceDesc"`
	DateTime    string    `json:"dateTime" doc:"DD.MM.YYYY HH:mm:ss in the configured time zone"`
	Timestamp   int64     `json:"timestamp" doc:"creation, epoch ms"`
	CountryName string    `json:"countryName" doc:"empty if unknown"`
	Expire      int64     `json:"expire" doc:"seconds left until expiry"`
	InfoTable   infoTable `json:"infoTable"`
}

type infoTable struct {
	Metadata infoTableMetadata `json:"metadata"`
	Data     [][]string        `json:"data" doc:"[header, value] in the order of infoTableHeaders"`
}

type infoTableMetadata struct {
	Type string `json:"type"`
	Rows int    `json:"rows"`
	Cols int    `json:"cols"`
}

func (g Group) ongoing(ctx context.Context, who rest.Caller, in ongoingRequest) ([]pendingPush, error) {
	if in.DeviceID != who.DeviceID {
		return nil, device.Refused()
	}
	language := ""
	if who.LanguageAsked { // else the user's own language takes precedence (D-GEN-16)
		language = who.Language
	}
	all, err := g.Answers.Ongoing(ctx, who.OwnerID, language, g.CountryName)
	if err != nil {
		return nil, err
	}
	zone := g.Zone
	if zone == nil {
		zone = time.UTC
	}
	out := make([]pendingPush, len(all))
	for i, a := range all {
		c, from := a.Challenge, a.Challenge.Starter
		p := pendingPushParams{IP: from.IP, DeviceBrand: from.Brand, DeviceModel: from.Model,
			DeviceDesc: from.Description,
			DateTime:   time.UnixMilli(c.CreatedAt).In(zone).Format("02.01.2006 15:04:05"), Timestamp: c.CreatedAt,
			CountryName: a.Country, Expire: int64(a.Left / time.Second),
			InfoTable: infoTable{Metadata: infoTableMetadata{Type: "table", Rows: len(a.Rows), Cols: 2},
				Data: make([][]string, len(a.Rows))}}
		for j, row := range a.Rows {
			p.InfoTable.Data[j] = row[:]
		}
		out[i] = pendingPush{Body: a.Text, Data: pendingPushData{ChallengeID: c.ID, TS: c.CreatedAt,
			MethodID: a.Method.ID,
			Action:   c.Action, ActionTitle: a.Title,
			NumberMatching: a.Method.Number != "", Params: p}}
		if rest.Or(in.Intent, false) {
			out[i].Intent, out[i].IntentDigest = new(rest.JSON(a.Document)), c.IntentDigest
		}
	}
	return out, nil
}
