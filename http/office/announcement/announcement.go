// Package announcement serves section 4.19 of the interface, announcements to users. It reads
// and writes the wire shapes of section 2.11 of the interface and leaves every rule to
// domain/office/announcement.
//
// Start reading at Endpoints.
package announcement

import (
	"context"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/fault"
	"castellan/domain/office/announcement"
	"castellan/http/rest"
)

const section = "4.19 Announcements"

// Group serves the section.
type Group struct {
	Service *announcement.Service
	CDN     string // prefix of the path of a picture
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/announcement/get", "List announcements", rest.NoAuth, g.list, fault.InvalidField).
			For(rest.Public).
			Try("isActive=true").
			Doc("listAnnouncements", "Pinned announcements first, then by priority, order number and start date. Drafts "+
				"are included; clients send isActive=true to omit them."),
		rest.Post("/announcement/add", "Create an announcement", rest.Tenant, g.add,
			fault.InvalidField, fault.Overloaded).Body(rest.FileBody).
			Try(`{"title":"Yeni Şube","message":"Pazartesi açıyoruz.","startDate":"2026-02-01","endDate":"2026-02-08",
				"isActive":true,"priority":10,"htmlContent":"<p>Pazartesi <b>açıyoruz</b>.</p>"}`).
			Doc("addAnnouncement", "The slug is derived from the title and stays when the title changes. With showSlider, "+
				"the three pictures, sliderName, routeContent and type are required."),
		rest.Post("/announcement/update", "Update an announcement", rest.Tenant, g.change,
			fault.InvalidField, fault.RecordNotFound, fault.Overloaded).Body(rest.FileBody).
			Try(`{"id":${addAnnouncement.data.id},"titleJson":{"en":"New branch","ar":"فرع جديد"}}`).
			Doc("updateAnnouncement", "Fields that are not sent stay unchanged; null clears nullable fields. The fields "+
				"that showSlider requires must be stored or sent."),
		rest.Post("/announcement/delete", "Delete an announcement", rest.Tenant, g.remove,
			fault.InvalidField, fault.RecordNotFound).
			TryLast(`{"id":${addAnnouncement.data.id}}`).
			Doc("deleteAnnouncement", "Permanently deletes the announcement and its pictures."),
	).NamesNoUser("the ids are those of announcements")
}

type record struct {
	ID                int64     `json:"id"`
	Slug              string    `json:"slug" example:"yeni-sube"`
	Title             string    `json:"title" doc:"plain text, in the requested language" example:"Yeni Şube"`
	Message           string    `json:"message" doc:"plain text" example:"We open on Monday."`
	HTMLContent       *string   `json:"htmlContent" doc:"sanitized HTML" example:"<p>We open on <b>Monday</b>.</p>"`
	RouteContent      rest.JSON `json:"routeContent" schema:"AnnouncementRoute"`
	StartDate         rest.Time `json:"startDate"`
	EndDate           rest.Time `json:"endDate"`
	IsActive          bool      `json:"isActive"`
	Priority          int64     `json:"priority" doc:"the highest is listed first" example:"10"`
	OrderNo           *int64    `json:"orderNo"`
	IsExpanded        *bool     `json:"isExpanded"`
	IsPinned          *bool     `json:"isPinned"`
	ShowSlider        *bool     `json:"showSlider"`
	SliderImageURL    *string   `json:"sliderImageUrl" doc:"for Android" example:"https://cdn.example.com/a.png"`
	WebSliderImageURL *string   `json:"webSliderImageUrl" example:"https://cdn.example.com/b.png"`
	IOSSliderImageURL *string   `json:"iosSliderImageUrl" example:"https://cdn.example.com/c.png"`
	Type              *int64    `json:"type" example:"1"`
	SliderClientType  *string   `json:"sliderClientType" doc:"target platform" example:"mobile"`
}

// showIn shows announcements in a language (D-ANN-05, D-ANN-06).
func (g Group) showIn(language string) func(announcement.Announcement) record {
	url := func(key string) *string {
		if key == "" {
			return nil
		}
		return new(g.CDN + "/" + blob.PublicPath(key))
	}
	return func(a announcement.Announcement) record {
		return record{ID: a.ID, Slug: a.Slug, Title: *a.Titles.In(language, &a.Title),
			Message: *a.Messages.In(language, &a.Message), HTMLContent: a.HTMLIn(language, g.Service.HTML),
			RouteContent: rest.JSON(a.RouteIn(language)), StartDate: rest.Time{Time: a.StartAt},
			EndDate: rest.Time{Time: a.EndAt}, IsActive: a.Active, Priority: a.Priority, OrderNo: a.OrderNo,
			IsExpanded: a.Expanded, IsPinned: a.Pinned, ShowSlider: a.Slider,
			SliderImageURL:    url(a.Pictures[announcement.Android]),
			WebSliderImageURL: url(a.Pictures[announcement.Web]),
			IOSSliderImageURL: url(a.Pictures[announcement.IOS]), Type: a.Type, SliderClientType: a.ClientType}
	}
}

type listRequest struct {
	ID       *rest.ID `json:"id"`
	Slug     *string  `json:"slug" example:"yeni-sube"`
	IsActive *bool    `json:"isActive"`
}

func (g Group) list(ctx context.Context, who rest.Caller, in listRequest) ([]record, error) {
	q := announcement.Query{ID: (*int64)(in.ID), Slug: in.Slug, Active: in.IsActive}
	all, err := g.Service.Store.List(ctx, q)
	return rest.Each(all, g.showIn(who.Language)), err
}

// optional are the fields that add and update share. The pictures are PNG, JPEG,
// WebP or GIF.
type optional struct {
	OrderNo            rest.Nullable[int64]               `json:"orderNo" minimum:"0" maximum:"1000000000"`
	IsExpanded         rest.Nullable[bool]                `json:"isExpanded"`
	IsPinned           rest.Nullable[bool]                `json:"isPinned"`
	ShowSlider         rest.Nullable[bool]                `json:"showSlider"`
	HTMLContent        rest.Nullable[string]              `json:"htmlContent" maxLength:"200000" example:"<p>x</p>"`
	SliderClientType   rest.Nullable[string]              `json:"sliderClientType" maxLength:"200" example:"mobile"`
	TitleJSON          *announcement.Texts                `json:"titleJson" schema:"AnnouncementTexts"`
	MessageJSON        *announcement.Texts                `json:"messageJson" schema:"AnnouncementTexts"`
	HTMLContentJSON    rest.Nullable[announcement.Texts]  `json:"htmlContentJson" schema:"AnnouncementTexts"`
	RouteContentJSON   rest.Nullable[announcement.Routes] `json:"routeContentJson" schema:"AnnouncementRoutes"`
	SliderImageData    rest.Nullable[rest.Base64]         `json:"sliderImageData" doc:"for Android" example:"R0lGODlh"`
	IOSSliderImageData rest.Nullable[rest.Base64]         `json:"iosSliderImageData" example:"R0lGODlh"`
	WebSliderImageData rest.Nullable[rest.Base64]         `json:"webSliderImageData" example:"R0lGODlh"`
	SliderName         *string                            `json:"sliderName" maxLength:"200" example:"opening"`
	RouteContent       rest.Nullable[rest.JSON]           `json:"routeContent" schema:"AnnouncementRoute"`
	Type               rest.Nullable[int64]               `json:"type" minimum:"0" maximum:"1000000000" example:"1"`
}

func (in optional) edit(a *announcement.Announcement) {
	in.OrderNo.Put(&a.OrderNo)
	in.IsExpanded.Put(&a.Expanded)
	in.IsPinned.Put(&a.Pinned)
	in.ShowSlider.Put(&a.Slider)
	in.HTMLContent.Put(&a.HTML)
	in.SliderClientType.Put(&a.ClientType)
	in.Type.Put(&a.Type)
	rest.Set(&a.Titles, in.TitleJSON)
	rest.Set(&a.Messages, in.MessageJSON)
	rest.Set(&a.SliderName, in.SliderName)
	in.HTMLContentJSON.Set(&a.HTMLs)
	in.RouteContent.Set((*rest.JSON)(&a.Route))
	in.RouteContentJSON.Set(&a.Routes)
}

func (in optional) images() (all announcement.Images) {
	for platform, data := range map[int]rest.Nullable[rest.Base64]{announcement.Android: in.SliderImageData,
		announcement.IOS: in.IOSSliderImageData, announcement.Web: in.WebSliderImageData} {
		if data.Sent {
			all[platform] = (*[]byte)(&data.Value)
		}
	}
	return all
}

type addRequest struct {
	Title     string    `json:"title" maxLength:"200" example:"Yeni Şube"`
	Message   string    `json:"message" maxLength:"4000" example:"We open on Monday."`
	StartDate rest.Time `json:"startDate"`
	EndDate   rest.Time `json:"endDate" doc:"inclusive; a date includes the whole day"`
	IsActive  bool      `json:"isActive"`
	Priority  int64     `json:"priority" minimum:"-1000000000" maximum:"1000000000" example:"10"`
	optional
}

func (g Group) add(ctx context.Context, who rest.Caller, in addRequest) (rest.Data[record], error) {
	a := announcement.Announcement{Title: in.Title, Message: in.Message, StartAt: in.StartDate.Time,
		EndAt: in.EndDate.Last(), Active: in.IsActive, Priority: in.Priority}
	in.edit(&a)
	a, err := g.Service.Add(ctx, who.By(), a, in.images())
	return g.answer(who, a, err)
}

type changeRequest struct {
	ID        rest.ID    `json:"id"`
	Title     *string    `json:"title" maxLength:"200" example:"Yeni Şube"`
	Message   *string    `json:"message" maxLength:"4000" example:"We open on Monday."`
	StartDate *rest.Time `json:"startDate"`
	EndDate   *rest.Time `json:"endDate" doc:"inclusive; a date includes the whole day"`
	IsActive  *bool      `json:"isActive"`
	Priority  *int64     `json:"priority" minimum:"-1000000000" maximum:"1000000000" example:"10"`
	optional
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (rest.Data[record], error) {
	a, err := g.Service.Change(ctx, who.By(), int64(in.ID), func(a *announcement.Announcement) {
		rest.Set(&a.Title, in.Title)
		rest.Set(&a.Message, in.Message)
		rest.Set(&a.Active, in.IsActive)
		rest.Set(&a.Priority, in.Priority)
		if in.StartDate != nil {
			a.StartAt = in.StartDate.Time
		}
		if in.EndDate != nil {
			a.EndAt = in.EndDate.Last()
		}
		in.edit(a)
	}, in.images())
	return g.answer(who, a, err)
}

func (g Group) answer(who rest.Caller, a announcement.Announcement, err error) (out rest.Data[record], _ error) {
	if err == nil {
		out.Data = g.showIn(who.Language)(a)
	}
	return out, err
}

type id struct {
	ID int64 `json:"id"`
}

func (g Group) remove(ctx context.Context, who rest.Caller, in rest.ByID) (rest.Data[id], error) {
	return rest.Data[id]{Data: id{int64(in.ID)}}, g.Service.Remove(ctx, who.By(), int64(in.ID))
}
