"""Human-readable durations."""


def format_duration(seconds):
    """Formats a duration in its two largest units, such as 42s, 1m32s, 3h07m or 2d05h."""
    seconds = round(seconds)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    if minutes:
        return f"{minutes}m{seconds % 60:02}s"
    return f"{seconds}s"
