"""The attention page inside a notebook."""

import dataclasses
import html

from etcmodel.inspection import page

__all__ = ["ShownPage", "show_page"]


@dataclasses.dataclass(frozen=True)
class ShownPage:
    """A page that a notebook shows in a frame, as the value of a cell.

    Attributes:
        html: str. The complete page.
        height: int. Height of the frame, in pixels.
    """

    html: str = dataclasses.field(repr=False)
    height: int = 480

    def _repr_html_(self):
        return (
            '<iframe title="Attention" sandbox="allow-scripts" '
            f'style="width: 100%; border: 1px solid #888" height="{self.height}" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def show_page(attention, long_tokens, global_tokens, *, height=480, **options):
    """Shows the page of `write_page` in a notebook.

    Args:
        attention, long_tokens, global_tokens: see `page.write_page`.
        height: int. Height of the frame, in pixels.
        **options: `title`, `attributions`, `sides`: see `page.write_page`.
    Returns:
        `ShownPage`.
    Raises:
        ValueError: as in `page.write_page`.

    >>> from etcmodel import inspection
    >>> model = etcmodel.from_pretrained("my_model")
    >>> found = inspection.attention(model, model.processor("Good!"), heads=[0], top=4)
    >>> inspection.show_page(found, ["[CLS]", "good", "!", "[SEP]"], ["[CLS]", "Good!"])
    ShownPage(height=480)
    """
    return ShownPage(page.render_page(attention, long_tokens, global_tokens, **options), height)
