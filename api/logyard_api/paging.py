"""What every list takes."""

from logyard_api.bodies import Count
from logyard_api.operations import ViewQuery


class ListQuery(ViewQuery, frozen=True):
    """Which part of a list. All conditions intersect.

    pageSize: rows of a page; 25 when absent, at most 1000
    pageToken: `pageToken` of the page before
    orderBy: a field and `asc` or `desc`, such as `createTime desc`
    filter: conditions such as `user=ana AND name="my flow"`
    """

    page_size: Count = 0
    page_token: str = ""
    order_by: str = ""
    filter: str = ""
